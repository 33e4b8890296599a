-- Values with the most traces within the time of a series.
SELECT /*include traces/series_group.sql*/ AS value
FROM traces
WHERE /*include traces/filters.sql*/
GROUP BY value
HAVING sum(sign) > 0
ORDER BY sum(sign) DESC, value
LIMIT {rows:UInt32}
SETTINGS /*include settings/cached.sql*/, /*include settings/threads.sql*/
