-- Agents of the given traces.
SELECT trace_id, argMax(agent_id, version) AS agent_id
FROM traces
WHERE org_id = {org_id:String} AND trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)}))) AND trace_id IN {trace_ids:Array(String)} AND sign = 1
GROUP BY trace_id
