-- The place in the trace list after some traces: the last trace that is skipped. No row: the list is not that long.
SELECT toUnixTimestamp64Milli(started_at) AS started_ms, trace_key
FROM traces
WHERE /*include traces/filters.sql*/
GROUP BY started_at, trace_key, version
HAVING sum(sign) > 0
ORDER BY started_at DESC, trace_key DESC
LIMIT 1 OFFSET {skipped_before:UInt64}
