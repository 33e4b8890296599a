-- Traces, among the given ones, that were counted as failing since yesterday, with their cluster: a
-- redelivered message comes soon after the first delivery. The statement reads through the
-- projection p_trace.
WITH {traces:Array(String)} AS names
SELECT org_id, names[indexOf(arrayMap(name -> sipHash64(name), names), trace_key)] AS trace_id, cluster_id, toUnixTimestamp64Milli(at) AS at_ms
FROM incident_traces
WHERE (org_id, trace_key) IN (SELECT org_id, trace_key FROM (/*include incidents/wanted.sql*/)) AND counted_at >= yesterday()
ORDER BY at
LIMIT 1 BY org_id, trace_id
