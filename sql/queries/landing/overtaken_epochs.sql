-- Epochs of partitions of the log that newer fences have overtaken and fenced_epochs does not have, and the mark that it is complete.
SELECT partition, toString(f.epoch) AS epoch
FROM (
  SELECT partition, epoch, max(epoch) OVER (PARTITION BY partition) AS newest
  FROM landing_fences
  WHERE partition < {reserved:UInt16}
  UNION ALL
  SELECT {mark:UInt16} AS partition, toUInt64(0) AS epoch, toUInt64(1) AS newest
) AS f
WHERE f.epoch != f.newest AND joinGet('fenced_epochs', 'is_fenced', f.partition, f.epoch) = 0
ORDER BY f.partition, f.epoch
