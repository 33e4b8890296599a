-- Documents that have all the words, as one bitmap of their numbers. The includer
-- names the segments to look into: WITH segments AS (SELECT … AS segment …).
-- A segment mixes organizations, so the caller looks these documents up among those of its own. A
-- bitmap takes up to 8 kB for each segment and word, however many documents have the word.
SELECT if(count() = length(arrayDistinct({words:Array(String)})), groupBitmapAndState(docs), groupBitmapAndStateIf(docs, 0))
FROM (
  SELECT groupBitmapOrState(bitmapBuild(arrayMap(place -> bitShiftLeft(segment, 16) + place, places))) AS docs
  FROM span_words
  WHERE word IN (SELECT cityHash64(arrayJoin({words:Array(String)}))) AND segment IN (SELECT segment FROM segments)
  GROUP BY word
)
