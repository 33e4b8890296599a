-- Epoch after the newest one of a partition.
SELECT toString(max(epoch) + 1) AS epoch
FROM landing_fences
WHERE partition = {partition:UInt16}
