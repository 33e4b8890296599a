-- Incidents of an organization, newest first, from a position on.
SELECT incident_id, cluster_id, status, agent_id, root_span_name, error, sample, toUnixTimestamp64Milli(opened_at) AS opened_ms,
  toUnixTimestamp64Milli(from_at) AS from_ms, toUnixTimestamp64Milli(until_at) AS until_ms, trace_count, first_trace_at, last_trace_at, resolved_at, resolved_by
FROM (/*include incidents/shown.sql*/)
WHERE /*include incidents/filters.sql*/
  /*if from_place_ms*/AND (opened_at, incident_id) < (fromUnixTimestamp64Milli({from_place_ms:Int64}, 'UTC'), {from_id:String})/*end*/
ORDER BY opened_at DESC, incident_id DESC
LIMIT {rows:UInt32} OFFSET {skip:UInt64}
