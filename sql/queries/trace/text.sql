-- One whole text of a span, as one value. A text is in one of the two tables; while the text mover
-- runs, it may be in both.
SELECT text FROM (
  SELECT /*if prompt*/prompt/*end*//*if response*/response/*end*/ AS text FROM span_texts WHERE /*include trace/span_place.sql*/ LIMIT 1
  UNION ALL
  SELECT /*if prompt*/prompt/*end*//*if response*/response/*end*/ AS text FROM span_texts_recent WHERE /*include trace/span_place.sql*/ LIMIT 1
)
LIMIT 1
FORMAT RowBinary
