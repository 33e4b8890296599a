-- Incidents of an organization as they are shown. An open incident has the traces counted so far.
SELECT
  i.incident_id AS incident_id,
  i.cluster_id AS cluster_id,
  i.status AS status,
  i.agent_id AS agent_id,
  i.root_span_name AS root_span_name,
  i.error AS error,
  i.sample AS sample,
  i.opened_at AS opened_at,
  i.from_at AS from_at,
  i.until_at AS until_at,
  i.resolved_at AS resolved_at,
  i.resolved_by AS resolved_by,
  (i.status = 'open' AND c.traces > 0) AS live,
  if(live, c.traces, i.trace_count) AS trace_count,
  if(live, c.first_at, i.first_trace_at) AS first_trace_at,
  if(live, c.last_at, i.last_trace_at) AS last_trace_at
FROM (SELECT * FROM incidents FINAL WHERE org_id = {org_id:String} /*if incident_id*/AND incident_id = {incident_id:String}/*end*/) AS i
LEFT JOIN (
  SELECT o.incident_id AS incident_id, uniqExact(t.trace_key) AS traces, min(t.started_at) AS first_at, max(t.started_at) AS last_at
  FROM (
    SELECT cluster_id, trace_key, at, started_at
    FROM incident_traces
    WHERE org_id = {org_id:String} AND cluster_id IN (
      SELECT cluster_id FROM incidents FINAL
      WHERE org_id = {org_id:String} AND status = 'open' /*if incident_id*/AND incident_id = {incident_id:String}/*end*/
    )
  ) AS t
  INNER JOIN (SELECT incident_id, cluster_id, from_at FROM incidents FINAL WHERE org_id = {org_id:String} AND status = 'open') AS o
    ON t.cluster_id = o.cluster_id
  WHERE t.at >= o.from_at
  GROUP BY o.incident_id
) AS c ON i.incident_id = c.incident_id
