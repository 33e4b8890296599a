-- Children of one span, in the order of their start.
SELECT span_id, flags
FROM spans
WHERE /*include traces/one.sql*/ AND parent_span_id = {span_id:String} AND span_id != {span_id:String}
ORDER BY started_at, log_seq, log_index, log_sub
LIMIT {rows:UInt32}
