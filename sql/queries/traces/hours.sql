-- Number of traces of a list in each hour, newest first. It locates a deep offset without sorting
-- the skipped rows.
SELECT toString(toUnixTimestamp(toStartOfHour(started_at)) * 1000) AS hour_ms, sum(sign) AS traces
FROM traces
WHERE /*include traces/filters.sql*/
GROUP BY toStartOfHour(started_at)
HAVING traces > 0
ORDER BY toStartOfHour(started_at) DESC
SETTINGS /*include settings/cached.sql*/, /*include settings/long_reads.sql*/
