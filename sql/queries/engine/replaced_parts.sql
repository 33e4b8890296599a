-- Number of parts, by table, that were replaced longer ago than the given number of seconds. Leaves out a table of which a merge runs,
-- because the statement that removes parts cancels it; but not where the parts take a quarter of the space that is free.
SELECT p.table AS name, toUInt32(count()) AS parts
FROM system.parts AS p
WHERE p.database = currentDatabase() AND NOT p.active AND p.remove_time > 0
  AND dateDiff('second', p.remove_time, now()) > {kept_s:UInt32}
GROUP BY p.table
HAVING p.table NOT IN (SELECT table FROM system.merges WHERE database = currentDatabase())
  OR sum(p.bytes_on_disk) > (SELECT min(unreserved_space) FROM system.disks) / 4
ORDER BY p.table
