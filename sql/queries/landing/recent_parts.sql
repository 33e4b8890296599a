-- Parts of span_texts_recent, each with its age.
SELECT p.name AS name, toString(p.rows) AS rows, toString(p.data_uncompressed_bytes) AS bytes,
  toString(dateDiff('second', p.modification_time, now())) AS age
FROM system.parts AS p
WHERE p.database = currentDatabase() AND p.table = 'span_texts_recent' AND p.active AND p.rows > 0
