-- Messages that log records hold of spans of the given traces, in the order in which they were said.
-- A text is in one of two tables; while the text mover runs, it may be in both.
SELECT s.trace_id AS trace_id, s.parent_span_id AS span_id, s.name AS name, any(t.prompt) AS prompt, any(t.response) AS response
FROM (
  SELECT trace_id, log_seq, log_index, log_sub, prompt, response FROM span_texts WHERE /*include span_messages/range.sql*/
    AND (log_seq, log_index, log_sub) IN (SELECT log_seq, log_index, log_sub FROM spans WHERE /*include span_messages/records.sql*/)
  UNION ALL
  SELECT trace_id, log_seq, log_index, log_sub, prompt, response FROM span_texts_recent WHERE /*include span_messages/range.sql*/
    AND (log_seq, log_index, log_sub) IN (SELECT log_seq, log_index, log_sub FROM spans WHERE /*include span_messages/records.sql*/)
) AS t
INNER JOIN (
  SELECT trace_id, parent_span_id, name, started_at, log_seq, log_index, log_sub FROM spans WHERE /*include span_messages/records.sql*/
) AS s USING (trace_id, log_seq, log_index, log_sub)
GROUP BY s.trace_id, s.parent_span_id, s.name, s.started_at, log_seq, log_index, log_sub
ORDER BY s.started_at, log_seq, log_index, log_sub
LIMIT {rows:UInt32}
