-- Rows of the trace list, newest first, from a position on. Rows of pairs that are not merged yet
-- appear side by side; the caller adds up sign by (trace_key, version).
SELECT /*include traces/columns.sql*/
FROM traces
WHERE /*include traces/filters.sql*/
  /*if from_ms*/AND (started_at, trace_key, version) < (fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC'), {from_key:UInt64}, {from_version:UInt64})/*end*/
ORDER BY started_at DESC, trace_key DESC, version DESC
LIMIT {rows:UInt32}
SETTINGS /*include settings/cached.sql*/, /*include settings/long_reads.sql*/ /*if user_id*/, /*include settings/by_user.sql*//*end*/
