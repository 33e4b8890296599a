-- One span of a trace with all that is stored of it but its texts. If several spans have the id,
-- the first of them.
SELECT span_id, parent_span_id, leftPad(lower(hex(event_key)), 16, '0') AS event_hex, kind, name, source_format, model, outcome, started_at, ended_at,
  toUnixTimestamp64Milli(started_at) AS started_ms, toUnixTimestamp64Milli(ended_at) AS ended_ms, agent_id, input_tokens, output_tokens,
  cached_input_tokens, first_token_ms, cost_usd, price_source, prompt_name, prompt_version, attributes, tags, sampled, flags, log_seq, log_index, log_sub
FROM spans
WHERE /*include traces/one.sql*/ AND span_id = {span_id:String}
ORDER BY started_at, log_seq, log_index, log_sub
LIMIT 1
