-- Number of active parts of the partition with the most of them, and the space of the fullest local
-- disk. A remote object store reports no capacity and is left out.
SELECT toUInt32(max(parts)) AS parts_max, any(disk.1) AS free_bytes, any(disk.2) AS total_bytes
FROM (SELECT count() AS parts FROM system.parts WHERE database = currentDatabase() AND active GROUP BY table, partition_id) AS counted,
  (SELECT argMin((toFloat64(unreserved_space), toFloat64(total_space)), unreserved_space / total_space) AS disk FROM system.disks WHERE type = 'Local') AS disks
