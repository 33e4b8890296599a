-- When the spans of some traces started.
SELECT org_id, trace_key, toUnixTimestamp64Milli(min(first_at)) AS from_ms, toUnixTimestamp64Milli(max(last_at)) AS to_ms
FROM trace_lookup
WHERE trace_key IN arrayMap(t -> sipHash64(t), {traces:Array(String)}) AND org_id IN {orgs:Array(String)}
GROUP BY org_id, trace_key
ORDER BY from_ms
