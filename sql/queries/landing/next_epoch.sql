-- Epoch after the newest one of a partition, above a base.
SELECT toString(greatest(max(epoch), {base:UInt64}) + 1) AS epoch
FROM landing_fences
WHERE partition = {partition:UInt16}
