-- Some traces, by org and key; orgs and traces are pairs by their place. As a subquery, so that keys and indexes are used.
SELECT pair.1 AS org_id, sipHash64(pair.2) AS trace_key, pair.2 AS trace_id FROM (SELECT arrayJoin(arrayZip({orgs:Array(String)}, {traces:Array(String)})) AS pair)
