-- The given traces, by organization and key; the two lists are parallel. They are in a subquery, so
-- that the engine uses keys and indexes.
SELECT pair.1 AS org_id, sipHash64(pair.2) AS trace_key, pair.2 AS trace_id FROM (SELECT arrayJoin(arrayZip({orgs:Array(String)}, {traces:Array(String)})) AS pair)
