-- Traces of one session or of one end user, oldest first, from a position on. Until a merge, every
-- replaced state of a trace has two rows, one with each sign: only states that remain are turns.
SELECT trace_id, toString(trace_key) AS key, toUnixTimestamp64Milli(any(started_at) AS first_at) AS started_ms, toUnixTimestamp64Milli(any(ended_at)) AS ended_ms,
  any(root_span_name) AS root_name, any(agent_id) AS agent, any(session_id) AS session, any(user_id) AS user, any(outcome) AS result,
  any(spans) AS span_count, any(input_tokens) AS tokens_in, any(output_tokens) AS tokens_out, any(toFloat64(cost_usd)) AS usd
FROM traces
WHERE /*include sessions/one.sql*/
GROUP BY trace_id, trace_key, version
HAVING sum(sign) > 0 /*if from_ms*/AND (first_at, trace_key) > (fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC'), {from_key:UInt64})/*end*/
ORDER BY first_at, trace_key
LIMIT {rows:UInt32} OFFSET {skip:UInt64}
