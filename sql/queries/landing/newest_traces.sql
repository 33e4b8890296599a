-- The traces of partitions with the newest rows, of each partition from a log position of its own on.
SELECT partition, org_id, trace_id
FROM traces
WHERE /*include landing/from_positions.sql*/ AND sign = 1
GROUP BY partition, org_id, trace_id
ORDER BY max(log_seq) DESC
LIMIT {rows:UInt32}
