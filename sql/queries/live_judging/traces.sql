-- Rows of the given traces, which are in these partitions.
org_id IN {orgs:Array(String)} AND trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)}))) AND partition IN {partitions:Array(UInt16)}
