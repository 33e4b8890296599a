-- The newest epoch of all partitions but one.
SELECT toString(max(epoch)) AS epoch
FROM landing_fences
WHERE partition != {except:UInt16}
