-- Models with the most calls within the time of a series.
SELECT model AS value
FROM spans
WHERE /*include traces/series_spans.sql*/ AND model != ''
GROUP BY value
ORDER BY count() DESC, value
LIMIT {rows:UInt32}
SETTINGS /*include settings/threads.sql*/
