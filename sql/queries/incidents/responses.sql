-- First response of a failing span of each outcome. A text is in one of the two tables; while the
-- text mover runs, it may be in both.
SELECT org_id, trace_key, outcome, argMin(response_start, place) AS text
FROM (
  SELECT org_id, trace_key, outcome, (started_at, log_seq, log_index, log_sub) AS place, substringUTF8(trimBoth(response), 1, {chars:UInt32}) AS response_start
  FROM span_texts
  WHERE /*include incidents/failed.sql*/
  UNION ALL
  SELECT org_id, trace_key, outcome, (started_at, log_seq, log_index, log_sub) AS place, substringUTF8(trimBoth(response), 1, {chars:UInt32}) AS response_start
  FROM span_texts_recent
  WHERE /*include incidents/failed.sql*/
)
WHERE response_start != ''
GROUP BY org_id, trace_key, outcome
