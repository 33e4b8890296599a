-- What was used, for each landing, org, agent and hour of receipt, whatever sampling kept. Outlives the spans.
-- No partitions: an insert is one part, so it lands whole or not at all, and max(log_seq) of a log partition tells how far
-- its usage has landed.
CREATE TABLE IF NOT EXISTS usage_events (
  org_id LowCardinality(String),
  hour DateTime('UTC') CODEC(Delta(4), ZSTD(1)),
  agent_id LowCardinality(String),
  events UInt64 CODEC(T64, ZSTD(1)),
  input_tokens UInt64 CODEC(T64, ZSTD(1)),
  output_tokens UInt64 CODEC(T64, ZSTD(1)),
  storage_bytes UInt64 CODEC(T64, ZSTD(1)),
  sandbox_seconds Decimal(38, 6) CODEC(ZSTD(1)),
  cost_usd Decimal(38, 12) CODEC(ZSTD(1)),
  partition UInt16 CODEC(ZSTD(1)),
  log_seq UInt64 CODEC(Delta(8), ZSTD(1)),
  INDEX ix_seq log_seq TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
ORDER BY (org_id, hour, agent_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;

-- Who may land which partition of the log: a new owner writes its epoch here before it reads what has landed, and every
-- landing statement takes only rows of partitions whose newest epoch is the writer's. So an owner that was paused and
-- wakes up writes nothing. Partition 65535 is the text mover.
CREATE TABLE IF NOT EXISTS landing_fences (
  partition UInt16,
  epoch UInt64,
  worker_id String,
  at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (partition, epoch)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1;
