-- Times between which the spans of the given traces started. The ids are in a subquery, because the
-- engine uses no index for a computed array.
SELECT trace_key, toUnixTimestamp64Milli(min(first_at)) AS from_ms, toUnixTimestamp64Milli(max(last_at)) AS to_ms
FROM trace_lookup
WHERE trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)}))) AND org_id = {org_id:String}
GROUP BY trace_key
