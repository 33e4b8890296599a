-- Agents that events of an organization named since a time, with their newest event, newest first.
SELECT agent_id, toUnixTimestamp64Milli(max(last_seen_at)) AS last_seen_ms
FROM agent_activity
WHERE org_id = {org_id:String} AND agent_id != ''
GROUP BY agent_id
HAVING max(last_seen_at) >= now64(3) - toIntervalDay({days:UInt32})
ORDER BY last_seen_ms DESC, agent_id
LIMIT {rows:UInt32}
