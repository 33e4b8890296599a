-- Number of traces of a list in each period of some length, by the time in the key.
SELECT intDiv(toUnixTimestamp64Milli(anchor), {period_ms:Int64}) AS period, sum(sign) AS traces
FROM traces
WHERE /*include traces/filters.sql*/
GROUP BY period
HAVING traces > 0
ORDER BY period
SETTINGS /*include settings/cached.sql*/, /*include settings/long_reads.sql*/
