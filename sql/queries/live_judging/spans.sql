-- Spans of the given traces up to a log position.
SELECT org_id, trace_id, toString(log_seq) AS seq, log_index, log_sub,
  toUnixTimestamp64Milli(started_at) AS started_ms, toUnixTimestamp64Milli(ended_at) AS ended_ms,
  parent_span_id = '' AS is_root, kind, model, source_format,
  parent_span_id, name, flags
FROM spans
WHERE /*include live_judging/within.sql*/ AND log_seq <= {through:UInt64}
