-- The given traces that any organization has, with whether this organization has them, and the
-- start of their first span in it.
SELECT w.trace_id AS trace_id, max(l.org_id = {org_id:String}) AS own, toUnixTimestamp64Milli(minIf(l.first_at, l.org_id = {org_id:String})) AS from_ms
FROM (
  SELECT trace_key, org_id, first_at
  FROM trace_lookup
  WHERE trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)})))
) AS l
INNER JOIN (SELECT arrayJoin({trace_ids:Array(String)}) AS trace_id, sipHash64(trace_id) AS trace_key) AS w ON l.trace_key = w.trace_key
GROUP BY trace_id
