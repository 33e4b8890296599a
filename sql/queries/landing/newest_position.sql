-- Newest log position of any row.
SELECT toString(max(seq)) AS seq
FROM (
  SELECT max(log_seq) AS seq FROM spans
  UNION ALL
  SELECT max(log_seq) AS seq FROM span_texts
  UNION ALL
  SELECT max(log_seq) AS seq FROM span_texts_recent
  UNION ALL
  SELECT max(log_seq) AS seq FROM traces
  UNION ALL
  SELECT max(log_seq) AS seq FROM usage_events
)
