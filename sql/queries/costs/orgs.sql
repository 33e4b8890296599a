-- Organizations with data on a day from `from` up to but not including `until`.
SELECT org_id
FROM usage_events
WHERE day >= toDate({from:UInt16}) AND day < toDate({until:UInt16})
GROUP BY org_id
ORDER BY org_id
