-- Failing traces of a cluster by bucket of time, and how many of them belong to one incident.
SELECT intDiv(toUnixTimestamp64Milli(at), {bucket_ms:Int64}) AS bucket, uniqExact(trace_key) AS traces,
  uniqExactIf(trace_key, at BETWEEN fromUnixTimestamp64Milli({first_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({last_ms:Int64}, 'UTC')) AS of_incident
FROM incident_traces
WHERE org_id = {org_id:String} AND cluster_id = {cluster_id:String}
  AND at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND at < fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
GROUP BY bucket
