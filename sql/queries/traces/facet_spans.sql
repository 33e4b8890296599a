-- Number of traces that only their spans describe and that have a span with each value of several
-- fields, each field by itself, in one pass over the spans. A row has the value of one field and null for the others. Of many traces
-- only one in `share` is counted, by its key, and stands for that many.
SELECT uniqExact(trace_key) * {share:UInt32} AS traces
  /*if by_model*/, model/*end*/
  /*if by_source_format*/, source_format/*end*/
  /*if by_department*/, department/*end*/
  /*if by_realm*/, realm/*end*/
FROM spans
WHERE /*include traces/spans_undescribed.sql*/ AND trace_key % {share:UInt32} = 0
  AND trace_key IN (
    SELECT trace_key FROM traces
    WHERE /*include traces/filters.sql*/ AND NOT described AND trace_key % {share:UInt32} = 0
    GROUP BY trace_key
    HAVING sum(sign) > 0
  )
GROUP BY GROUPING SETS (()
  /*if by_model*/, (model)/*end*/
  /*if by_source_format*/, (source_format)/*end*/
  /*if by_department*/, (department)/*end*/
  /*if by_realm*/, (realm)/*end*/)
HAVING true
  /*if by_model*/AND ifNull(model != '', true)/*end*/
  /*if by_source_format*/AND ifNull(source_format != '', true)/*end*/
  /*if by_department*/AND ifNull(department != '', true)/*end*/
  /*if by_realm*/AND ifNull(realm != '', true)/*end*/
ORDER BY traces DESC
LIMIT {rows:UInt32} BY traces > 0
  /*if by_model*/, isNull(model)/*end*/
  /*if by_source_format*/, isNull(source_format)/*end*/
  /*if by_department*/, isNull(department)/*end*/
  /*if by_realm*/, isNull(realm)/*end*/
SETTINGS group_by_use_nulls = 1
