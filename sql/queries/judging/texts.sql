-- Prompts and responses of the given spans. A text is in one of the two tables; while the text
-- mover runs, it may be in both.
SELECT trace_id, log_seq, log_index, log_sub, prompt, response
FROM span_texts
WHERE org_id = {org_id:String} AND started_at IN {times:Array(DateTime64(3, 'UTC'))}
  AND (log_seq, log_index, log_sub) IN arrayZip({seqs:Array(UInt64)}, {indexes:Array(UInt32)}, {subs:Array(UInt32)})
UNION ALL
SELECT trace_id, log_seq, log_index, log_sub, prompt, response
FROM span_texts_recent
WHERE org_id = {org_id:String} AND started_at IN {times:Array(DateTime64(3, 'UTC'))}
  AND (log_seq, log_index, log_sub) IN arrayZip({seqs:Array(UInt64)}, {indexes:Array(UInt32)}, {subs:Array(UInt32)})
