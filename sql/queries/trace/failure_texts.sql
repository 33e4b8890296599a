-- Beginnings of the responses of failed spans of a trace. A text is in one of the two tables; while
-- the text mover runs, it may be in both.
SELECT log_seq, log_index, log_sub, substringUTF8(trimBoth(response), 1, {chars:UInt32}) AS message
FROM span_texts
WHERE /*include traces/one.sql*/ AND outcome != 'success' AND response != ''
ORDER BY started_at DESC
LIMIT {rows:UInt32}
UNION ALL
SELECT log_seq, log_index, log_sub, substringUTF8(trimBoth(response), 1, {chars:UInt32}) AS message
FROM span_texts_recent
WHERE /*include traces/one.sql*/ AND outcome != 'success' AND response != ''
ORDER BY started_at DESC
LIMIT {rows:UInt32}
SETTINGS /*include settings/cached.sql*/
