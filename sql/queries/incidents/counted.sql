-- Which of some traces are counted as failing already, and in which cluster. Read through the projection p_trace.
SELECT org_id, trace_id, cluster_id, toUnixTimestamp64Milli(at) AS at_ms
FROM incident_traces
WHERE org_id IN {orgs:Array(String)} AND trace_key IN arrayMap(t -> sipHash64(t), {traces:Array(String)})
ORDER BY at
LIMIT 1 BY org_id, trace_id
