-- Number of texts of parts of span_texts_recent that have words and a number of a range, which is of
-- one segment; and number of documents of the range that have postings.
SELECT (
  SELECT count() FROM span_texts_recent
  WHERE _part IN {parts:Array(String)} AND words != ''
    AND transform(_part, {parts:Array(String)}, {firsts:Array(UInt64)}, toUInt64(0)) + _part_offset >= {from:UInt64}
    AND transform(_part, {parts:Array(String)}, {firsts:Array(UInt64)}, toUInt64(0)) + _part_offset < {until:UInt64}
) AS texts, (
  SELECT groupBitmapArray(documents) FROM (
    SELECT arrayFilter(doc -> doc >= {from:UInt64} AND doc < {until:UInt64}, arrayMap(place -> segment * 65536 + place, places)) AS documents
    FROM span_words
    WHERE segment = bitShiftRight({from:UInt64}, 16)
  )
) AS posted
