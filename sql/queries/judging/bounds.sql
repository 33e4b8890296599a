-- When the spans of some traces started. A list in a subquery, as the index is used for it.
SELECT trace_key, toUnixTimestamp64Milli(min(first_at)) AS from_ms, toUnixTimestamp64Milli(max(last_at)) AS to_ms
FROM trace_lookup
WHERE trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)}))) AND org_id = {org_id:String}
GROUP BY trace_key
