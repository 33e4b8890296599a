-- Live rows of the given traces in a partition. An organization and a trace that were not asked for
-- together may match too.
SELECT /*include landing/trace_columns.sql*/
FROM traces
WHERE org_id IN {orgs:Array(String)} AND trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)}))) AND partition = {partition:UInt16} AND sign = 1
ORDER BY version DESC
LIMIT 1 BY org_id, trace_id
