-- Texts of a trace that have all the words. Texts are whole up to a number of bytes in all, the
-- earliest first; of the others only the beginnings are returned. A text is in one of the two tables;
-- while the text mover runs, it may be in both.
WITH
  segments AS (/*include spans/segments_within.sql*/),
  (/*include spans/docs_with_words.sql*/) AS found
SELECT span_id,
  if(bytes_before <= {bytes:UInt32}, prompt, leftUTF8(prompt, {chars:UInt32})) AS prompt,
  if(bytes_before <= {bytes:UInt32}, response, leftUTF8(response, {chars:UInt32})) AS response
FROM (
  SELECT *, sum(length(prompt) + length(response)) OVER (ORDER BY started_ms, log_seq, log_index, log_sub ROWS UNBOUNDED PRECEDING) AS bytes_before
  FROM (
    SELECT span_id, toUnixTimestamp64Milli(started_at) AS started_ms, log_seq, log_index, log_sub, prompt, response
    FROM (
      SELECT span_id, started_at, log_seq, log_index, log_sub, prompt, response
      FROM span_texts
      WHERE /*include trace/worded.sql*/
      UNION ALL
      SELECT span_id, started_at, log_seq, log_index, log_sub, prompt, response
      FROM span_texts_recent
      WHERE /*include traces/one.sql*/ AND hasAllTokens(words, {words:Array(String)})
    )
    ORDER BY started_ms, log_seq, log_index, log_sub
    LIMIT 1 BY log_seq, log_index, log_sub
    LIMIT {rows:UInt32}
  )
)
ORDER BY started_ms, log_seq, log_index, log_sub
