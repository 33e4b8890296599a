-- Traces by bucket of time and group. Rows of pairs that are not merged yet cancel out in the sums.
-- Percentiles need whole traces, so durations are first counted in classes of 2 %, in which pairs
-- cancel out too: the percentiles are exact to 1 %.
SELECT bucket, grp, other, sum(n) AS traces, sum(n_errors) AS errors, sum(n_timeouts) AS timeouts, toFloat64(sum(cost)) AS cost_usd,
  sum(tokens_in) AS input_tokens, sum(tokens_out) AS output_tokens,
  quantilesExactWeighted(0.5, 0.95, 0.99)(toFloat64(ms / greatest(n, 1)), toUInt64(greatest(n, 0))) AS quantiles
FROM (
  SELECT intDiv(toUnixTimestamp64Milli(started_at), {step_ms:Int64}) AS bucket,
    if(/*include traces/series_group.sql*/ IN {top:Array(String)}, /*include traces/series_group.sql*/, '') AS grp,
    /*include traces/series_group.sql*/ NOT IN {top:Array(String)} AS other,
    toInt32(log(duration_ms + 1) / log(1.02)) AS class,
    sum(sign) AS n, sumIf(sign, outcome = 'error') AS n_errors, sumIf(sign, outcome = 'timeout') AS n_timeouts, sum(sign * cost_usd) AS cost,
    sum(sign * toInt64(input_tokens)) AS tokens_in, sum(sign * toInt64(output_tokens)) AS tokens_out, sum(sign * toInt64(duration_ms)) AS ms
  FROM traces
  WHERE /*include traces/filters.sql*/ /*if named*/AND /*include traces/series_group.sql*/ IN {top:Array(String)}/*end*/
  GROUP BY bucket, grp, other, class
)
GROUP BY bucket, grp, other
HAVING traces > 0
ORDER BY bucket, other, grp
SETTINGS /*include settings/cached.sql*/, /*include settings/threads.sql*/
