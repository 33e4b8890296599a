-- Position in a ranked trace list after a number of traces, as the last trace to skip. Returns no
-- row when the list is shorter.
SELECT toUnixTimestamp64Milli(started_at) AS started_ms, trace_key, /*include traces/rank.sql*/ AS rank
FROM traces
WHERE /*include traces/filters.sql*/
GROUP BY rank, started_at, trace_key, version
HAVING sum(sign) > 0
ORDER BY rank DESC, started_at DESC, trace_key DESC
LIMIT 1 OFFSET {skipped_before:UInt64}
