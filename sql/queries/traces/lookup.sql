-- Organizations that have a trace with this id, and the times between which its spans started.
SELECT org_id, toUnixTimestamp64Milli(min(first_at)) AS from_ms, toUnixTimestamp64Milli(max(last_at)) AS to_ms
FROM trace_lookup
WHERE trace_key = sipHash64({trace_id:String})
GROUP BY org_id
