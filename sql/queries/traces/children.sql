-- Children of the given spans of a trace, in the order of their start, and whether log records among
-- them hold messages of their span (bit 11 of the flags).
SELECT parent_span_id, groupArray(span_id) AS children, max(bitTest(flags, 11)) AS has_messages
FROM (
  SELECT parent_span_id, span_id, flags
  FROM spans
  WHERE /*include traces/one.sql*/ AND parent_span_id IN {span_ids:Array(String)}
  ORDER BY started_at, log_seq, log_index, log_sub
)
GROUP BY parent_span_id
