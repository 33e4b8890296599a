-- Rows of a ranked trace list, the largest first, from a position on. Rows of pairs that are not
-- merged yet appear side by side; the caller adds up sign by (trace_key, version).
SELECT /*include traces/columns.sql*/, /*include traces/rank.sql*/ AS rank
FROM traces
WHERE /*include traces/filters.sql*/
  /*if from_ms*/AND (rank, started_at, trace_key, version) < ({from_rank:Float64}, fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC'), {from_key:UInt64}, {from_version:UInt64})/*end*/
ORDER BY rank DESC, started_at DESC, trace_key DESC, version DESC
LIMIT {rows:UInt32}
SETTINGS /*include settings/cached.sql*/, /*include settings/long_reads.sql*/
