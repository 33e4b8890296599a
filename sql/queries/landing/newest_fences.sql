-- Newest epoch of each given partition.
SELECT partition, toString(max(epoch)) AS newest
FROM landing_fences
WHERE partition IN {partitions:Array(UInt16)}
GROUP BY partition
