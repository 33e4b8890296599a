-- Traces, sessions and costs of one end user on each day on which a trace began.
SELECT toUInt16(toDate(first_at)) AS on_day, count() AS traces, countIf(failed) AS failed_traces, uniqExactIf(session, session != '') AS sessions,
  sum(tokens_in) AS input_tokens, sum(tokens_out) AS output_tokens, toString(sum(usd)) AS cost
FROM (
  SELECT any(started_at) AS first_at, any(outcome != 'success') AS failed, any(session_id) AS session, any(input_tokens) AS tokens_in,
    any(output_tokens) AS tokens_out, any(cost_usd) AS usd
  FROM traces
  WHERE /*include sessions/one.sql*/ AND anchor >= toDateTime64(toDate({from:UInt16}), 3, 'UTC')
  GROUP BY trace_key, version
  HAVING sum(sign) > 0
)
WHERE first_at >= toDateTime64(toDate({from:UInt16}), 3, 'UTC') AND first_at < toDateTime64(toDate({until:UInt16}), 3, 'UTC')
GROUP BY on_day
