-- Failing traces of the given clusters, each cluster between its own two instants: their number,
-- times and texts. Of a trace with two rows the first counts.
SELECT
  t.org_id AS org_id,
  t.cluster_id AS cluster_id,
  uniqExact(t.trace_key) AS trace_count,
  toUnixTimestamp64Milli(min(t.started_at)) AS first_trace_ms,
  toUnixTimestamp64Milli(max(t.started_at)) AS last_trace_ms,
  toUnixTimestamp64Milli(max(t.at)) AS last_ms,
  any(t.agent_id) AS agent_id,
  any(t.root_span_name) AS root_span_name,
  any(t.error) AS error,
  argMin(t.sample, (t.at, t.trace_id)) AS sample
FROM (SELECT org_id, cluster_id, trace_key, trace_id, at, started_at, agent_id, root_span_name, error, sample
    FROM incident_traces WHERE /*include incidents/pairs.sql*/ AND at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC')) AS t
INNER JOIN (
  SELECT wanted.1 AS org_id, wanted.2 AS cluster_id, wanted.3 AS from_ms, wanted.4 AS until_ms
  FROM (SELECT arrayJoin(arrayZip({orgs:Array(String)}, {clusters:Array(String)}, {froms_ms:Array(Int64)}, {untils_ms:Array(Int64)})) AS wanted)
) AS w ON t.org_id = w.org_id AND t.cluster_id = w.cluster_id
WHERE toUnixTimestamp64Milli(t.at) BETWEEN w.from_ms AND w.until_ms
GROUP BY org_id, cluster_id
