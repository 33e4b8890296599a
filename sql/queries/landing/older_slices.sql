-- Slices of a part of span_texts with texts that have words and no document number, by the numbers
-- that the texts will get. A projection would count its own rows in _part_offset.
SELECT min(number) AS from, max(number) + 1 AS until
FROM (SELECT {first:UInt64} + _part_offset AS number FROM span_texts WHERE _part = {part:String} AND doc = 0 AND dl > 0)
GROUP BY bitShiftRight(number, 16), intDiv(bitAnd(number, 65535), {slice_rows:UInt32})
ORDER BY min(number)
SETTINGS optimize_use_projections = 0
