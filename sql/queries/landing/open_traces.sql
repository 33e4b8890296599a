-- Live rows of the traces of partitions that hold something from a log position of the partition on,
-- oldest version first.
SELECT *
FROM (
  SELECT partition, /*include landing/trace_columns.sql*/
  FROM traces
  WHERE /*include landing/from_positions.sql*/ AND sign = 1
  ORDER BY version DESC
  LIMIT 1 BY org_id, trace_id
)
ORDER BY version
