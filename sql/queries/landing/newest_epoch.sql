-- Newest epoch of all partitions except one.
SELECT toString(max(epoch)) AS epoch
FROM landing_fences
WHERE partition != {except:UInt16}
