-- Commonest values of lists that describe traces, with the number of described traces that have
-- each. Every list is counted by itself. The passes of a request read the same columns for their
-- filters, which the cache of uncompressed blocks decompresses once. With slices, only their traces are counted.
SELECT '' AS field, '' AS value, toInt64(0) AS traces WHERE false
/*if by_model*/UNION ALL SELECT * FROM (
  SELECT 'model' AS field, arrayJoin(models) AS value, sum(sign) AS traces
  FROM traces
  WHERE /*include traces/filters.sql*/ AND described /*include traces/counted_part.sql*/
  GROUP BY value
  HAVING traces > 0
  ORDER BY traces DESC, value
  LIMIT {rows:UInt32}
)/*end*/
/*if by_source_format*/UNION ALL SELECT * FROM (
  SELECT 'source_format' AS field, arrayJoin(source_formats) AS value, sum(sign) AS traces
  FROM traces
  WHERE /*include traces/filters.sql*/ AND described /*include traces/counted_part.sql*/
  GROUP BY value
  HAVING traces > 0
  ORDER BY traces DESC, value
  LIMIT {rows:UInt32}
)/*end*/
/*if by_department*/UNION ALL SELECT * FROM (
  SELECT 'department' AS field, arrayJoin(departments) AS value, sum(sign) AS traces
  FROM traces
  WHERE /*include traces/filters.sql*/ AND described /*include traces/counted_part.sql*/
  GROUP BY value
  HAVING traces > 0
  ORDER BY traces DESC, value
  LIMIT {rows:UInt32}
)/*end*/
/*if by_realm*/UNION ALL SELECT * FROM (
  SELECT 'realm' AS field, arrayJoin(realms) AS value, sum(sign) AS traces
  FROM traces
  WHERE /*include traces/filters.sql*/ AND described /*include traces/counted_part.sql*/
  GROUP BY value
  HAVING traces > 0
  ORDER BY traces DESC, value
  LIMIT {rows:UInt32}
)/*end*/
SETTINGS /*include settings/cached.sql*/
