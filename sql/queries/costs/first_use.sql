-- The day on which an org's first event was received; no row where there was none.
SELECT toUInt16(toDate(hour)) AS first_day FROM usage_events WHERE org_id = {org_id:String} ORDER BY hour LIMIT 1
