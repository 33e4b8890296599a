-- Number of parts, by table, that were replaced longer ago than the given number of seconds.
SELECT p.table AS name, toUInt32(count()) AS parts
FROM system.parts AS p
WHERE p.database = currentDatabase() AND NOT p.active AND p.remove_time > 0
  AND dateDiff('second', p.remove_time, now()) > {kept_s:UInt32}
GROUP BY p.table
ORDER BY p.table
