-- Day on which an organization's first event was received. Returns no row if there is none.
SELECT toUInt16(toDate(hour)) AS first_day FROM usage_events WHERE org_id = {org_id:String} ORDER BY hour LIMIT 1
