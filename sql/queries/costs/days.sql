-- Cost of each day, grouped like the projection p_day.
SELECT toUInt16(day) AS on_day, toString(sum(u.cost_usd)) AS cost_usd
FROM usage_events AS u
WHERE org_id = {org_id:String} AND day >= toDate({from:UInt16}) AND day < toDate({until:UInt16})
GROUP BY day
