-- Agents with a landing after a time (by the store's clock), in the order of landing. Rows with the
-- same time are never split.
SELECT
  org_id,
  agent_id,
  toUnixTimestamp64Milli(max(last_seen_at)) AS last_seen_ms,
  toUnixTimestamp64Milli(max(landed_at)) AS landed_ms
FROM agent_activity
WHERE landed_at > fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND agent_id != ''
GROUP BY org_id, agent_id
ORDER BY landed_ms
LIMIT {rows:UInt32} WITH TIES
