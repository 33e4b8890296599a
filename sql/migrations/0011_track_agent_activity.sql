-- When an agent was heard of last. A landing's usage row carries the newest receipt in it; a view keeps the greatest of each
-- agent, whatever lands twice. landed_at tells readers what has moved since they looked, as receipts do not land in order.
-- The view writes exactly one row for each usage row, so that the count of rows written still tells whether all were.
ALTER TABLE usage_events
  ADD COLUMN IF NOT EXISTS last_received_at DateTime64(3, 'UTC') COMMENT 'Newest receipt of an event in the row' CODEC(Delta(8), ZSTD(1)) AFTER agent_id;

CREATE TABLE IF NOT EXISTS agent_activity (
  org_id LowCardinality(String),
  agent_id String COMMENT 'As events name it, registered or not; empty for none' CODEC(ZSTD(1)),
  last_seen_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'Newest receipt of an event of the agent',
  landed_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) COMMENT 'When the newest row about it was written, by the clock of the store'
)
ENGINE = AggregatingMergeTree
ORDER BY (org_id, agent_id)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'When each agent was heard of last. Rows of one agent have to be merged: max.';

CREATE MATERIALIZED VIEW IF NOT EXISTS agent_activity_mv TO agent_activity AS
SELECT u.org_id AS org_id, u.agent_id AS agent_id, u.last_received_at AS last_seen_at, now64(3, 'UTC') AS landed_at
FROM usage_events AS u;
