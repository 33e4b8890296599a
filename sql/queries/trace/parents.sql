-- Ids and parents of the spans of a trace, as columns in one row.
SELECT groupArray({rows:UInt32})(span_id) AS span_id, groupArray({rows:UInt32})(parent_span_id) AS parent_span_id
FROM (
  SELECT span_id, parent_span_id FROM spans WHERE /*include traces/one.sql*/ ORDER BY started_at, log_seq, log_index, log_sub
)
SETTINGS /*include settings/cached.sql*/
