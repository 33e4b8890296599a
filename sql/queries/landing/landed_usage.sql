-- Log positions of the usage rows of a partition, from a position on.
SELECT DISTINCT toString(log_seq) AS seq
FROM usage_events
WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64}
