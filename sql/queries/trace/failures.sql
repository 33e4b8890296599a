-- Failed spans of a trace, those that ended last first, with what their attributes say of the error.
SELECT span_id, toUnixTimestamp64Milli(started_at) AS started_ms, log_seq, log_index, log_sub, /*include trace/error_text.sql*/ AS message
FROM spans
WHERE /*include traces/one.sql*/ AND outcome != 'success'
ORDER BY ended_at DESC, log_seq DESC, log_index DESC, log_sub DESC
LIMIT {rows:UInt32}
SETTINGS /*include settings/cached.sql*/
