-- Columns of a trace row from which a worker restores an open trace.
org_id, trace_id, toUnixTimestamp64Milli(anchor) AS anchor_ms, toUnixTimestamp64Milli(started_at) AS started_ms, toUnixTimestamp64Milli(ended_at) AS ended_ms,
  toUnixTimestamp64Milli(root_at) AS root_ms, root_span_id, root_span_name, agent_id, outcome, session_id, user_id, tags, spans, input_tokens, output_tokens,
  toString(cost_usd) AS cost, sampled, forced_from, described, models, source_formats, departments, realms, prompts, backfilled, version
