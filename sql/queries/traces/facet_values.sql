-- Commonest values of a column of traces with the number of traces of each, after the empty value. Rows of pairs that are
-- not merged yet cancel out. The total is over all values, also those beyond the limit.
-- With slices, only their traces are counted.
SELECT value, traces, sum(traces) OVER () AS total
FROM (
  SELECT /*include traces/facet_column.sql*/ AS value, sum(sign) AS traces
  FROM traces
  WHERE /*include traces/filters.sql*/ /*include traces/counted_part.sql*/
  GROUP BY value
  HAVING traces > 0
)
ORDER BY value = '' DESC, traces DESC, value
LIMIT {rows:UInt32}
SETTINGS /*include settings/cached.sql*/
