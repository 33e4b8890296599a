-- Those of the given parts of span_texts that have texts with words and without a document number, the
-- newest week first.
SELECT p.name AS name, p.rows AS rows, p.data_uncompressed_bytes AS bytes, o.texts AS texts,
  p.name IN (
    SELECT arrayJoin(source_part_names) FROM system.merges WHERE database = currentDatabase() AND table = 'span_texts' AND NOT is_mutation
  ) AS merging
FROM system.parts AS p
INNER JOIN (
  SELECT _part AS part, count() AS texts FROM span_texts WHERE _part IN {parts:Array(String)} AND doc = 0 AND dl > 0 GROUP BY _part
) AS o ON o.part = p.name
WHERE p.database = currentDatabase() AND p.table = 'span_texts' AND p.active
ORDER BY p.partition_id DESC, p.name
SETTINGS optimize_use_projections = 0
