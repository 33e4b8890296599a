-- Spans of a trace whose texts have all the patterns, with the part of each text around the first
-- match of any of them. The match includes the characters beside the word, so that its first
-- occurrence as a text is the match itself; a match at the end of a text has none behind it. The
-- engine compiles the patterns for each block of rows, so the blocks are large.
WITH
  text -> extract(text, {any_pattern:String}) AS found,
  (text, hit) -> if(match(hit, '[\\pL\\pN]$'), length(text) - length(hit) + 1, position(text, hit)) AS place,
  (text, hit) -> if(hit = '', '', toValidUTF8(substring(text, greatest(1, toInt64(place(text, hit)) - {bytes_before:UInt32}), {bytes:UInt32}))) AS around
SELECT span_id, around(prompt, found(prompt)) AS prompt_window, around(response, found(response)) AS response_window,
  startsWith(prompt, '[') OR startsWith(prompt, '{') AS prompt_is_json
FROM (
  SELECT span_id, toUnixTimestamp64Milli(started_at) AS started_ms, log_seq, log_index, log_sub, prompt, response
  FROM (
    SELECT span_id, started_at, log_seq, log_index, log_sub, prompt, response
    FROM span_texts
    WHERE /*include traces/one.sql*/ AND /*include trace/has_patterns.sql*/
    UNION ALL
    SELECT span_id, started_at, log_seq, log_index, log_sub, prompt, response
    FROM span_texts_recent
    WHERE /*include traces/one.sql*/ AND /*include trace/has_patterns.sql*/
  )
  ORDER BY started_ms, log_seq, log_index, log_sub
  LIMIT 1 BY log_seq, log_index, log_sub
  LIMIT {rows:UInt32}
)
ORDER BY started_ms, log_seq, log_index, log_sub
SETTINGS preferred_block_size_bytes = 33554432
