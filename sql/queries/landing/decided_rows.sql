-- Rows of partitions, of each from a log position of its own on, with what tail sampling decided. A
-- text is stored only for a sampled event.
SELECT partition, org_id, trace_id, log_seq, log_index, sampled
FROM spans
WHERE /*include landing/from_positions.sql*/
UNION ALL
SELECT partition, org_id, trace_id, log_seq, log_index, true AS sampled
FROM span_texts_recent
WHERE /*include landing/from_positions.sql*/
UNION ALL
SELECT partition, org_id, trace_id, log_seq, log_index, true AS sampled
FROM span_texts
WHERE /*include landing/from_positions.sql*/
