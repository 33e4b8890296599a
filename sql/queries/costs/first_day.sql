-- First day with data of an organization. Returns no row if there is none. It is grouped like the
-- projection, because a bare min() reads rows.
SELECT toUInt16(day) AS first_day
FROM usage_events
WHERE org_id = {org_id:String}
GROUP BY day
ORDER BY day
LIMIT 1
