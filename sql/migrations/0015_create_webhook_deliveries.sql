-- The log of webhook tries: one row a try, or the end of a delivery without one. A row may stand twice (its insert was
-- repeated): readers take the first by (event_id, attempt, at).
--
-- ORDER BY: the log of one receiver is read by time. PARTITION BY week: rows leave after 30 days by whole parts.
CREATE TABLE IF NOT EXISTS webhook_deliveries (
  org_id LowCardinality(String),
  target_id String COMMENT 'webhook_id, or what holds the address of an alert' CODEC(ZSTD(1)),
  event_id String COMMENT 'X-Service-Event-Id' CODEC(ZSTD(1)),
  event LowCardinality(String),
  attempt UInt32 COMMENT 'X-Service-Attempt, from 0' CODEC(T64, ZSTD(1)),
  outcome Enum8('delivered' = 1, 'failed' = 2, 'retrying' = 3, 'dead-lettered' = 4),
  status_code UInt16 COMMENT '0 where no answer came' CODEC(T64, ZSTD(1)),
  error String COMMENT 'Why no answer came' CODEC(ZSTD(1)),
  duration_ms UInt32 CODEC(T64, ZSTD(1)),
  at DateTime64(3, 'UTC') COMMENT 'When the try began' CODEC(Delta(8), ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toMonday(at)
ORDER BY (org_id, target_id, at, event_id)
TTL toDateTime(at) + INTERVAL 30 DAY DELETE
SETTINGS ttl_only_drop_parts = 1
COMMENT 'Tries of webhooks, kept for 30 days.';
