-- Log positions of the texts of partitions, of each from a log position of its own on. While the text
-- mover runs, a text may be in both tables.
SELECT partition, log_seq, log_index, log_sub
FROM span_texts_recent
WHERE /*include landing/from_positions.sql*/
UNION ALL
SELECT partition, log_seq, log_index, log_sub
FROM span_texts
WHERE /*include landing/from_positions.sql*/
