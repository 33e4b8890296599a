-- Live trace rows of a partition, from a log position on.
SELECT org_id, trace_id, version
FROM traces
WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64} AND sign = 1
