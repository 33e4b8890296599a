-- Documents of an organization in some segments: for each segment the place, the number of words and
-- the start of each document, as lists of the same order.
SELECT bitShiftRight(doc, 16) AS segment, groupArray(toUInt16(bitAnd(doc, 65535))), groupArray(dl), groupArray(toFloat64(toUnixTimestamp64Milli(started_at)))
FROM span_texts
WHERE org_id = {org_id:String} AND doc >= {first:UInt64} AND doc <= {last:UInt64} AND bitShiftRight(doc, 16) IN {segments:Array(UInt64)}
GROUP BY segment
SETTINGS /*include settings/threads.sql*/
FORMAT RowBinary
