-- Use of an organization in a period, by log partition and agent, with the log position up to which
-- the rows of each partition are counted. Agents that are not listed are summed under the empty
-- agent.
SELECT
  partition,
  if(has({agents:Array(String)}, u.agent_id)/*if all_agents*/ OR {all_agents:Bool}/*end*/, u.agent_id, '') AS agent,
  max(log_seq) AS log_seq,
  sum(input_tokens + output_tokens) AS tokens,
  sum(u.storage_bytes) AS storage_bytes,
  toUInt64(sum(u.sandbox_seconds) * 1000000) AS sandbox_micros,
  toString(sum(u.cost_usd)) AS cost_usd
FROM usage_events AS u
WHERE org_id = {org_id:String}/*if of_key*/ AND key_id = {key_id:String}/*end*/ AND hour >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND hour < fromUnixTimestamp64Milli({until:Int64}, 'UTC')
GROUP BY partition, agent
