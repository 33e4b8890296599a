-- Some of an org's traces, in the order of their time. The key is a hash of the id: the first by it are spread evenly over time,
-- and the same whenever it is asked of the same traces.
SELECT trace_id
FROM (
  SELECT any(trace_id) AS trace_id, min(anchor) AS at
  FROM traces
  WHERE org_id = {org_id:String}
    /*if since_ms*/AND anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
  GROUP BY trace_key
  HAVING sum(sign) > 0
  ORDER BY trace_key
  LIMIT {rows:UInt32}
)
ORDER BY at, trace_id
