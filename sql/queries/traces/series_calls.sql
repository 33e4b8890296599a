-- Model calls of traces by bucket of their start, and by model. A trace counts in each bucket and
-- model that it has calls in; other numbers are those of the calls. With `filtered`, only calls of
-- the traces that match the filters count.
SELECT intDiv(toUnixTimestamp64Milli(started_at), {step_ms:Int64}) AS bucket,
  if(/*include traces/series_group.sql*/ IN {top:Array(String)}, /*include traces/series_group.sql*/, '') AS grp,
  /*include traces/series_group.sql*/ NOT IN {top:Array(String)} AS other,
  uniqCombined(trace_key) AS traces, uniqCombinedIf(trace_key, outcome = 'error') AS errors, uniqCombinedIf(trace_key, outcome = 'timeout') AS timeouts,
  toFloat64(sum(cost_usd)) AS cost_usd, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
  quantilesTDigest(0.5, 0.95, 0.99)(greatest(0, dateDiff('millisecond', started_at, ended_at))) AS quantiles
FROM spans
WHERE /*include traces/series_spans.sql*/ AND model != '' /*if named*/AND /*include traces/series_group.sql*/ IN {top:Array(String)}/*end*/
GROUP BY bucket, grp, other
ORDER BY bucket, other, grp
SETTINGS /*include settings/threads.sql*/
