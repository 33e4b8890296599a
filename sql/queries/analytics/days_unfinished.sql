-- One row while the projections of days are being made of older spans. The database that reads all shards is
-- named after that of one shard.
SELECT 1 AS unfinished
FROM system.mutations
WHERE database IN (currentDatabase(), replaceRegexpOne(currentDatabase(), '_all$', '')) AND table = 'spans' AND NOT is_done AND position(command, 'p_day') > 0
LIMIT 1
