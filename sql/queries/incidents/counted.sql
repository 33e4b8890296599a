-- Traces, among the given ones, that were counted as failing since yesterday, with their cluster: a
-- redelivered message comes soon after the first delivery. The statement reads through the
-- projection p_trace.
SELECT c.org_id AS org_id, w.trace_id AS trace_id, c.cluster_id AS cluster_id, toUnixTimestamp64Milli(c.at) AS at_ms
FROM (
  SELECT org_id, trace_key, cluster_id, at
  FROM incident_traces
  WHERE (org_id, trace_key) IN (SELECT org_id, trace_key FROM (/*include incidents/wanted.sql*/)) AND counted_at >= yesterday()
) AS c
INNER JOIN (/*include incidents/wanted.sql*/) AS w ON c.org_id = w.org_id AND c.trace_key = w.trace_key
ORDER BY c.at
LIMIT 1 BY org_id, trace_id
