-- Times between which the spans of the given traces started. It searches the lookup table of all
-- traces, so it is for the few traces that are far from now.
SELECT l.org_id AS org_id, w.trace_id AS trace_id, toUnixTimestamp64Milli(min(l.first_at)) AS from_ms, toUnixTimestamp64Milli(max(l.last_at)) AS to_ms
FROM (
  SELECT org_id, trace_key, first_at, last_at
  FROM trace_lookup
  WHERE (trace_key, org_id) IN (SELECT trace_key, org_id FROM (/*include incidents/wanted.sql*/))
) AS l
INNER JOIN (/*include incidents/wanted.sql*/) AS w ON l.org_id = w.org_id AND l.trace_key = w.trace_key
GROUP BY org_id, trace_id
