-- Days whose cost was out of the ordinary: one row an org and day. A later look at the same day replaces the row, and keeps
-- detected_at; read it with FINAL.
CREATE TABLE IF NOT EXISTS anomalies (
  org_id LowCardinality(String) COMMENT 'Org',
  day Date COMMENT 'Day whose cost it is, UTC',
  anomaly_id String COMMENT 'anom_ and 16 hex digits; follows from org and day',
  detected_at DateTime64(3, 'UTC') COMMENT 'When it was found first',
  z Float64 COMMENT 'Distance from the mean in sample standard deviations, at most 99 either way',
  expected_usd Decimal(38, 12) COMMENT 'Mean of the days before',
  actual_usd Decimal(38, 12) COMMENT 'Cost of the day when it was last looked at',
  model LowCardinality(String) COMMENT 'Model that went furthest from its own mean, together with the agent; empty for none',
  agent_id String COMMENT 'Agent, likewise',
  looked_at DateTime64(3, 'UTC') COMMENT 'When the day was last looked at: the newest row holds'
)
ENGINE = ReplacingMergeTree(looked_at)
ORDER BY (org_id, day)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Days whose cost was out of the ordinary, one row an org and day. Read it with FINAL.';
