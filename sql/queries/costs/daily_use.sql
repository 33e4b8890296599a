-- Use of an organization, or of one of its agents, on each day of receipt, which counts against the
-- limits.
SELECT
  toUInt16(toDate(hour)) AS on_day,
  sum(input_tokens) + sum(output_tokens) AS tokens,
  sum(u.storage_bytes) AS storage_bytes,
  toUInt64(sum(u.sandbox_seconds) * 1000000) AS sandbox_micros,
  toString(sum(u.cost_usd)) AS cost_usd
FROM usage_events AS u
WHERE org_id = {org_id:String}/*if by_agent*/ AND agent_id = {agent_id:String}/*end*/ AND hour >= toDateTime(toDate({from:UInt16}), 'UTC') AND hour < toDateTime(toDate({until:UInt16}), 'UTC')
GROUP BY on_day
