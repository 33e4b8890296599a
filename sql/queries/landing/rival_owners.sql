-- Other workers that raised the same fence.
SELECT DISTINCT worker_id
FROM landing_fences
WHERE partition = {partition:UInt16} AND epoch = {epoch:UInt64} AND worker_id != {worker:String}
