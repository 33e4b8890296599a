-- When the asked traces started and ended. Two rows of a pair that are not merged yet are one.
SELECT trace_id, toUnixTimestamp64Milli(min(started_at)) AS from_ms, toUnixTimestamp64Milli(max(greatest(ended_at, started_at))) AS to_ms
FROM traces
WHERE /*include traces/filters.sql*/
GROUP BY trace_id
HAVING sum(sign) > 0
