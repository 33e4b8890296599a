-- Newest row of each given trace.
SELECT org_id, trace_key, trace_id, root_span_name, agent_id, outcome,
  toUnixTimestamp64Milli(started_at) AS started_ms, toUnixTimestamp64Milli(ended_at) AS ended_ms
FROM traces
WHERE org_id IN {orgs:Array(String)}
  AND anchor BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
  AND (org_id, trace_key) IN (SELECT org_id, trace_key FROM (/*include incidents/wanted.sql*/))
  AND sign = 1
ORDER BY version DESC
LIMIT 1 BY org_id, trace_id
