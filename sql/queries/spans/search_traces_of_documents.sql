-- Trace keys of some documents, in no particular order. The projection p_docs answers it.
SELECT trace_key
FROM span_texts
WHERE org_id = {org_id:String} AND doc IN {docs:Array(UInt64)}
FORMAT RowBinary
