-- Model calls and tools of a trace in the order of their start, with the sizes of their texts in
-- bytes.
SELECT s.span_id AS span_id, s.parent_span_id AS parent_span_id, s.kind AS kind, s.log_seq AS log_seq, s.log_index AS log_index, s.log_sub AS log_sub,
  s.started_at AS started_at, toUnixTimestamp64Milli(s.started_at) AS started_ms, t.bytes AS bytes, s.sampled AS sampled, s.flags AS flags
FROM (
  SELECT span_id, parent_span_id, kind, log_seq, log_index, log_sub, started_at, sampled, flags
  FROM spans
  WHERE /*include traces/one.sql*/ AND kind IN ('llm', 'tool')
) AS s
LEFT JOIN (
  SELECT log_seq, log_index, log_sub, max(bytes) AS bytes FROM (
    SELECT log_seq, log_index, log_sub, length(prompt) + length(response) AS bytes FROM span_texts WHERE /*include traces/one.sql*/
    UNION ALL
    SELECT log_seq, log_index, log_sub, length(prompt) + length(response) AS bytes FROM span_texts_recent WHERE /*include traces/one.sql*/
  )
  GROUP BY log_seq, log_index, log_sub
) AS t ON s.log_seq = t.log_seq AND s.log_index = t.log_index AND s.log_sub = t.log_sub
ORDER BY started_at, log_seq, log_index, log_sub
LIMIT {rows:UInt32}
SETTINGS /*include settings/cached.sql*/
