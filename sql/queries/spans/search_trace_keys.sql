-- Documents of an organization in some segments: for each segment the place and the trace key of each
-- document, as lists of the same order. The projection p_docs answers it.
SELECT bitShiftRight(doc, 16) AS segment, groupArray(toUInt16(bitAnd(doc, 65535))), groupArray(trace_key)
FROM span_texts
WHERE org_id = {org_id:String} AND doc >= {first:UInt64} AND doc <= {last:UInt64} AND bitShiftRight(doc, 16) IN {segments:Array(UInt64)}
GROUP BY segment
SETTINGS /*include settings/threads.sql*/
FORMAT RowBinary
