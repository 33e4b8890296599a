-- Time to the first token of the model calls that say it, by bucket of their start.
SELECT intDiv(toUnixTimestamp64Milli(started_at), {step_ms:Int64}) AS bucket, quantilesTDigest(0.5, 0.95)(first_token_ms) AS quantiles
FROM spans
WHERE /*include traces/series_spans.sql*/ AND first_token_ms > 0
GROUP BY bucket
ORDER BY bucket
SETTINGS /*include settings/threads.sql*/
