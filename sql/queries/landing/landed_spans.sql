-- Log positions of the spans of a partition, from a position on.
SELECT log_seq, log_index, log_sub
FROM spans
WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64}
