-- Rows of the trace list, newest first, from a position on. Rows of pairs that are not merged yet
-- appear side by side; the caller adds up sign by (trace_key, version).
SELECT trace_id, trace_key, version, sign, started_at, ended_at, toUnixTimestamp64Milli(started_at) AS started_ms, duration_ms, root_span_name, agent_id,
  outcome, session_id, user_id, tags, spans, input_tokens, output_tokens, cost_usd
FROM traces
WHERE /*include traces/filters.sql*/
  /*if from_ms*/AND (started_at, trace_key, version) < (fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC'), {from_key:UInt64}, {from_version:UInt64})/*end*/
ORDER BY started_at DESC, trace_key DESC, version DESC
LIMIT {rows:UInt32}
