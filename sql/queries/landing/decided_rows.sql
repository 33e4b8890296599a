-- Rows of a partition from a log position on, with what tail sampling decided. A text is stored
-- only for a sampled event.
SELECT org_id, trace_id, log_seq, log_index, sampled
FROM spans
WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64}
UNION ALL
SELECT org_id, trace_id, log_seq, log_index, true AS sampled
FROM span_texts_recent
WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64}
UNION ALL
SELECT org_id, trace_id, log_seq, log_index, true AS sampled
FROM span_texts
WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64}
