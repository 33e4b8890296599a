-- Spans that the given log records hold messages of and that have no texts of their own. Bit 11 of the
-- flags is message_record, bit 1 has_texts.
SELECT m.trace_id AS trace_id, m.log_seq AS log_seq, m.log_index AS log_index, m.log_sub AS log_sub,
  s.span_id AS span_id, s.name AS name, s.model AS model, s.outcome AS outcome, s.cost_usd AS cost_usd, s.started_at AS started_at
FROM (
  SELECT trace_id, parent_span_id, log_seq, log_index, log_sub FROM spans
  WHERE /*include span_messages/range.sql*/ AND bitTest(flags, 11)
    AND (log_seq, log_index, log_sub) IN arrayZip({seqs:Array(UInt64)}, {indexes:Array(UInt32)}, {subs:Array(UInt32)})
) AS m
INNER JOIN (
  SELECT trace_id, span_id, name, model, outcome, cost_usd, started_at FROM spans
  WHERE /*include span_messages/range.sql*/ AND NOT bitTest(flags, 1) AND NOT bitTest(flags, 11)
) AS s ON s.trace_id = m.trace_id AND s.span_id = m.parent_span_id
LIMIT 1 BY m.trace_id, m.log_seq, m.log_index, m.log_sub
