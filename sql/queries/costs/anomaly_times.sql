-- Time at which an organization's anomaly of a day was first found. Returns no row if there is
-- none.
SELECT toString(toUnixTimestamp64Milli(detected_at)) AS detected_ms
FROM anomalies FINAL
WHERE org_id = {org_id:String} AND day = toDate({day:UInt16})
