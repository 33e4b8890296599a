-- Beginnings of the texts of spans at the given places. A prompt is returned whole, or, if it is a
-- long list of messages, the first one of the user. A text is in one of the two tables; while the
-- text mover runs, it may be in both.
WITH arrayFirst(
    message -> JSONExtractString(message, 'role') IN ('user', 'human'),
    JSONExtractArrayRaw(if(length(prompt) > {whole_bytes:UInt32}, prompt, ''))
  ) AS said
SELECT toString(log_seq) AS seq, log_index, log_sub, leftUTF8(response, {chars:UInt32}) AS answer,
  multiIf(
    length(prompt) <= {whole_bytes:UInt32}, prompt,
    said = '', if(match(prompt, '^\\s*\\['), '', leftUTF8(prompt, {chars:UInt32})),
    length(said) <= {whole_bytes:UInt32}, concat('[', said, ']'),
    leftUTF8(JSONExtractString(said, 'content'), {chars:UInt32})
  ) AS asked
FROM (
  SELECT started_at, log_seq, log_index, log_sub, prompt, response FROM span_texts WHERE /*include traces/preview_places.sql*/
  UNION ALL
  SELECT started_at, log_seq, log_index, log_sub, prompt, response FROM span_texts_recent WHERE /*include traces/preview_places.sql*/
)
