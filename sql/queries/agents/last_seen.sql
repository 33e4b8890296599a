-- Time of the newest event of each given agent. The lists of organizations and agents are parallel.
SELECT org_id, agent_id, toUnixTimestamp64Milli(max(last_seen_at)) AS last_seen_ms
FROM agent_activity
WHERE (org_id, agent_id) IN (SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({orgs:Array(String)}, {agents:Array(String)})) AS pair))
GROUP BY org_id, agent_id
