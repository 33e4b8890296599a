-- Sample of an organization's traces, in the order of their time. The sampling key is a hash of the
-- id: the first traces by it are spread evenly over time, and the same traces always give the same
-- sample.
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
