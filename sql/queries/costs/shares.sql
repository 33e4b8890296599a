-- Cost of each model and agent on each day, in which anomalies are searched.
SELECT toUInt16(day) AS on_day, model, agent_id, toString(sum(u.cost_usd)) AS cost_usd
FROM usage_events AS u
WHERE org_id = {org_id:String} AND day >= toDate({from:UInt16}) AND day < toDate({until:UInt16})
GROUP BY day, model, agent_id
HAVING sum(u.cost_usd) != 0
