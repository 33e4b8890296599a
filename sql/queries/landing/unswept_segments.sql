-- Segments of span_words in a range in which places may lack their documents: those of older texts,
-- and of each epoch's moves the last one with a document and those after it. All moves of an epoch
-- but the last were complete.
SELECT s.segment AS segment
FROM (SELECT DISTINCT segment FROM span_words WHERE segment >= {from:UInt64} AND segment < {until:UInt64}) AS s
LEFT JOIN (
  SELECT bitShiftRight(number, 20) AS epoch, max(number) AS last
  FROM (SELECT bitShiftRight(doc, 16) AS number FROM span_texts GROUP BY org_id, bitShiftRight(doc, 16))
  WHERE number >= {from:UInt64} AND number < {until:UInt64} AND NOT bitTest(number, 19)
  GROUP BY epoch
) AS d ON d.epoch = bitShiftRight(s.segment, 20)
WHERE bitTest(s.segment, 19) OR s.segment >= d.last
ORDER BY s.segment
