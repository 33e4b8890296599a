-- The first day on which an org had any data; no row where it has none. Grouped, as the projection is: a bare min() reads rows.
SELECT toUInt16(day) AS first_day
FROM usage_events
WHERE org_id = {org_id:String}
GROUP BY day
ORDER BY day
LIMIT 1
