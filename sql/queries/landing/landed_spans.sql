-- Log positions of the spans of partitions, of each from a log position of its own on.
SELECT partition, log_seq, log_index, log_sub
FROM spans
WHERE /*include landing/from_positions.sql*/
