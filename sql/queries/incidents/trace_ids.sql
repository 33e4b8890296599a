-- Newest traces of an incident.
SELECT trace_id
FROM incident_traces
WHERE org_id = {org_id:String} AND cluster_id = {cluster_id:String}
  AND at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC')
  /*if until_ms*/AND at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
ORDER BY at DESC, trace_id DESC
LIMIT 1 BY trace_id
LIMIT {rows:UInt32}
