-- Newest log position of the usage rows of partitions, of each from a log position of its own on.
SELECT partition, toString(max(log_seq)) AS seq
FROM usage_events
WHERE /*include landing/from_positions.sql*/
GROUP BY partition
