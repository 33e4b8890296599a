-- Spans that supply the prompt and the response of traces. Both come from the root where it has the
-- text. Otherwise the prompt comes from the earliest model call, else the earliest span; the
-- response comes from the model call that ended last, else the span that ended last. A text is in
-- one of two tables; while the text mover runs, it may be in both. Log records give no texts here:
-- bits 11 and 12 of the flags are message_record and line_record.
SELECT trace_id,
  argMinIf(started_at, prompt_place, prompt_bytes > 0) AS prompt_at, argMinIf(log_seq, prompt_place, prompt_bytes > 0) AS prompt_seq,
  argMinIf(log_index, prompt_place, prompt_bytes > 0) AS prompt_index, argMinIf(log_sub, prompt_place, prompt_bytes > 0) AS prompt_sub,
  argMinIf(prompt_bytes, prompt_place, prompt_bytes > 0) AS prompt_length,
  argMaxIf(started_at, response_place, response_bytes > 0) AS response_at, argMaxIf(log_seq, response_place, response_bytes > 0) AS response_seq,
  argMaxIf(log_index, response_place, response_bytes > 0) AS response_index, argMaxIf(log_sub, response_place, response_bytes > 0) AS response_sub,
  argMaxIf(response_bytes, response_place, response_bytes > 0) AS response_length,
  argMaxIf(model, response_place, response_bytes > 0) AS model,
  countIf(prompt_bytes > 0 AND (is_root OR kind = 'llm')) > 0 AS call_asked, countIf(response_bytes > 0 AND (is_root OR kind = 'llm')) > 0 AS call_answered
FROM (
  SELECT trace_id, started_at, log_seq, log_index, log_sub, model, kind, is_root, prompt_bytes, response_bytes,
    (NOT is_root, kind != 'llm', started_at, log_seq, log_index, log_sub) AS prompt_place,
    (is_root, kind = 'llm', ended_at, log_seq, log_index, log_sub) AS response_place
  FROM (
    SELECT trace_id, log_seq, log_index, log_sub, length(prompt) AS prompt_bytes, length(response) AS response_bytes
    FROM span_texts
    WHERE /*include judging/stretch.sql*/
    UNION ALL
    SELECT trace_id, log_seq, log_index, log_sub, length(prompt) AS prompt_bytes, length(response) AS response_bytes
    FROM span_texts_recent
    WHERE /*include judging/stretch.sql*/
  ) AS texts
  INNER JOIN (
    SELECT trace_id, started_at, ended_at, kind, model, log_seq, log_index, log_sub,
      parent_span_id = '' AND (started_at, log_seq, log_index, log_sub)
        = minIf((started_at, log_seq, log_index, log_sub), parent_span_id = '') OVER (PARTITION BY trace_id) AS is_root
    FROM spans
    WHERE /*include judging/stretch.sql*/ AND NOT bitTest(flags, 11) AND NOT bitTest(flags, 12)
  ) AS placed USING (trace_id, log_seq, log_index, log_sub)
)
GROUP BY trace_id
