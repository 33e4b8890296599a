-- Those of the given segments of span_words with a place that no document has. It reads the places of
-- whole parts, because the segments of a word are beside each other.
WITH (
  SELECT groupBitmapState(doc) FROM span_texts
  WHERE doc >= {from:UInt64} AND doc < {until:UInt64} AND bitShiftRight(doc, 16) IN {segments:Array(UInt64)}
) AS documents
SELECT DISTINCT segment
FROM span_words
WHERE segment IN {segments:Array(UInt64)} AND arrayExists(place -> NOT bitmapContains(documents, segment * 65536 + place), places)
ORDER BY segment
SETTINGS max_threads = 1
