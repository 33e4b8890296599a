-- When an org's anomaly of a day was found first; no row where it was not.
SELECT toString(toUnixTimestamp64Milli(detected_at)) AS detected_ms
FROM anomalies FINAL
WHERE org_id = {org_id:String} AND day = toDate({day:UInt16})
