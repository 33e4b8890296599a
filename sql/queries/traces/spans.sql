-- Spans of a trace in the order of its tree: by parent with the root first, then by start, then by
-- arrival.
SELECT span_id, parent_span_id, leftPad(lower(hex(event_key)), 16, '0') AS event_hex, kind, name, source_format, model, outcome, started_at, ended_at,
  toUnixTimestamp64Milli(started_at) AS started_ms, toUnixTimestamp64Milli(ended_at) AS ended_ms, input_tokens, output_tokens, cost_usd, attributes, tags,
  sampled, flags, storage_bytes, log_seq, log_index, log_sub
  /*if counted*/, count() OVER () AS total/*end*/
FROM spans
WHERE /*include traces/one.sql*/
ORDER BY parent_span_id, started_at, log_seq, log_index, log_sub
/*if rows*/LIMIT {rows:UInt32}/*end*/
