-- Spans of a trace whose texts have all the words, in order, with the number of words of each. A text
-- is in one of the two tables; while the text mover runs, it may be in both.
WITH
  segments AS (/*include spans/segments_within.sql*/),
  (/*include spans/docs_with_words.sql*/) AS found
SELECT span_id, started_at, log_seq, log_index, log_sub, dl AS text_words
FROM (
  SELECT span_id, started_at, log_seq, log_index, log_sub, dl
  FROM span_texts
  WHERE /*include trace/worded.sql*/
  UNION ALL
  SELECT span_id, started_at, log_seq, log_index, log_sub, dl
  FROM span_texts_recent
  WHERE /*include traces/one.sql*/ AND hasAllTokens(words, {words:Array(String)})
)
ORDER BY started_at, log_seq, log_index, log_sub
LIMIT 1 BY log_seq, log_index, log_sub
