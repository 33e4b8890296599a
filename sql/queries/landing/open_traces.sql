-- Live rows of the traces of a partition that hold something newer than a log position, oldest
-- version first.
SELECT *
FROM (
  SELECT /*include landing/trace_columns.sql*/
  FROM traces
  WHERE partition = {partition:UInt16} AND log_seq > {through:UInt64} AND sign = 1
  ORDER BY version DESC
  LIMIT 1 BY org_id, trace_id
)
ORDER BY version
