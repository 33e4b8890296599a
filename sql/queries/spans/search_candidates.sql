-- Places of the documents within the filters of a search, by segment.
SELECT bitShiftRight(doc, 16) AS segment, groupArray(toUInt16(bitAnd(doc, 65535)))
FROM span_texts
WHERE /*include spans/candidates.sql*/
GROUP BY segment
FORMAT RowBinary
