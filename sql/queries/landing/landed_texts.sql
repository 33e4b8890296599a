-- Log positions of the texts of a partition, from a position on. While the text mover runs, a text
-- may be in both tables.
SELECT log_seq, log_index, log_sub
FROM span_texts_recent
WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64}
UNION ALL
SELECT log_seq, log_index, log_sub
FROM span_texts
WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64}
