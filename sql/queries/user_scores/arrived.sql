-- Traces of these ids that have arrived, by organization, with the start of their first span.
SELECT found.org_id AS org_id, wanted.trace_id AS trace_id, found.from_ms AS from_ms
FROM (
  SELECT org_id, trace_key, toUnixTimestamp64Milli(min(first_at)) AS from_ms
  FROM trace_lookup
  WHERE trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)}))) AND org_id IN {org_ids:Array(String)}
  GROUP BY org_id, trace_key
) AS found
INNER JOIN (
  SELECT id AS trace_id, sipHash64(id) AS trace_key FROM (SELECT arrayJoin({trace_ids:Array(String)}) AS id)
) AS wanted ON wanted.trace_key = found.trace_key
