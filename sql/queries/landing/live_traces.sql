-- Those of the given traces that have a live row in a partition, also where the row moved to another shard and its pair was not merged yet. An
-- organization and a trace that were not asked for together may match too.
SELECT org_id, trace_id, version
FROM traces
WHERE org_id IN {orgs:Array(String)} AND trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)}))) AND partition = {partition:UInt16}
GROUP BY org_id, trace_id, version
HAVING sum(sign) > 0
