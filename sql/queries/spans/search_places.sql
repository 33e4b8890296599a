-- Names of the given spans, and the agents of their traces.
SELECT s.log_seq AS log_seq, s.log_index AS log_index, s.log_sub AS log_sub, s.trace_id AS trace_id, s.name AS name, t.agent_id AS agent_id
FROM (
  SELECT log_seq, log_index, log_sub, trace_id, trace_key, name
  FROM spans
  WHERE org_id = {org_id:String} AND started_at IN {times:Array(DateTime64(3, 'UTC'))}
    AND (trace_id, log_seq, log_index, log_sub) IN arrayZip({trace_ids:Array(String)}, {seqs:Array(UInt64)}, {indexes:Array(UInt32)}, {subs:Array(UInt32)})
) AS s
LEFT JOIN (
  SELECT trace_key, argMax(agent_id, version) AS agent_id
  FROM traces
  WHERE org_id = {org_id:String} AND trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)}))) AND sign = 1
  GROUP BY trace_key
) AS t ON s.trace_key = t.trace_key
