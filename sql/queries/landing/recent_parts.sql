-- Parts of span_texts_recent, each with its age and its first log position.
SELECT p.name AS name, toString(p.rows) AS rows, toString(p.data_uncompressed_bytes) AS bytes,
  toString(dateDiff('second', p.modification_time, now())) AS age, toString(s.seq) AS seq
FROM system.parts AS p
INNER JOIN (SELECT _part AS part, min(log_seq) AS seq FROM span_texts_recent GROUP BY _part) AS s ON s.part = p.name
WHERE p.database = currentDatabase() AND p.table = 'span_texts_recent' AND p.active AND p.rows > 0
