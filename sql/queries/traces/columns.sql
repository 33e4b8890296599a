-- Columns of an item of the trace list.
trace_id, trace_key, version, sign, started_at, ended_at, toUnixTimestamp64Milli(started_at) AS started_ms, duration_ms, root_span_name, agent_id,
  outcome, session_id, user_id, tags, spans, input_tokens, output_tokens, cost_usd
