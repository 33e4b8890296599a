-- Rows of the given traces in a partition.
org_id IN {orgs:Array(String)} AND trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)}))) AND partition = {partition:UInt16}
