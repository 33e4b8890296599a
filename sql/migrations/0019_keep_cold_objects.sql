-- What left for cold storage, and what is on its way.
--
-- cold_objects has a row for each org and day whose texts are in an object. A later state replaces the row; read it with FINAL.
-- An object is written (next_key) before it is read back and takes the place of the one before (object_key): whoever dies in
-- between leaves a name that the next run takes away.
CREATE TABLE IF NOT EXISTS cold_objects (
  org_id LowCardinality(String) COMMENT 'Org',
  day Date COMMENT 'Day on which its spans began, UTC',
  state Enum8('writing' = 1, 'verified' = 2, 'dropped' = 3, 'deleted' = 4) COMMENT 'verified: read back and found equal; dropped: its texts are gone from the store since',
  object_key String COMMENT 'The object that holds the day; empty before the first one is verified' CODEC(ZSTD(1)),
  rows UInt64 COMMENT 'Texts in it',
  bytes UInt64 COMMENT 'Its length',
  sha256 String COMMENT 'Of its bytes, 64 hex digits' CODEC(ZSTD(1)),
  exported_at DateTime64(3, 'UTC') COMMENT 'When it was verified',
  dropped_as_of Date COMMENT 'As of which day its texts were dropped last',
  next_key String COMMENT 'An object that is being written, or has become superfluous; empty when there is none' CODEC(ZSTD(1)),
  run String COMMENT 'Run of the job that wrote this row' CODEC(ZSTD(1)),
  version UInt64 COMMENT 'The newest state of a day holds'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (org_id, day)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Objects of cold storage, one row an org and day. Read it with FINAL.';

-- Which texts a run of retention exports and drops, by their place in the log: exactly those, whatever lands beside. PARTITION BY
-- run: a run's rows go by dropping its partition.
CREATE TABLE IF NOT EXISTS cold_rows (
  run String COMMENT 'Run of the job',
  org_id LowCardinality(String) COMMENT 'Org',
  day Date COMMENT 'Day on which the span began, UTC' CODEC(ZSTD(1)),
  partition UInt16 COMMENT 'Place of the span in the log, as in spans' CODEC(ZSTD(1)),
  log_seq UInt64 CODEC(Delta(8), ZSTD(1)),
  log_index UInt32 CODEC(ZSTD(1)),
  log_sub UInt32 CODEC(ZSTD(1)),
  restored Bool COMMENT 'It came from the object, and is in it'
)
ENGINE = MergeTree
PARTITION BY run
ORDER BY (org_id, day, partition, log_seq, log_index, log_sub)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Texts that a run of retention exports and drops. Empty when none is under way.';

-- Texts on their way out of an object: all of them are here, counted, before any goes on. PARTITION BY task: what is done goes by
-- dropping its partition.
CREATE TABLE IF NOT EXISTS cold_staging (
  task String COMMENT 'What they are taken for',
  org_id LowCardinality(String),
  started_at DateTime64(3, 'UTC') CODEC(Delta(8), LZ4),
  trace_id String CODEC(LZ4),
  span_id String CODEC(LZ4),
  event_key UInt64 CODEC(NONE),
  model LowCardinality(String),
  outcome LowCardinality(String),
  cost_usd Decimal(18, 12) CODEC(T64, LZ4),
  prompt String CODEC(LZ4),
  response String CODEC(LZ4),
  extra_words String CODEC(LZ4),
  dl UInt32 CODEC(LZ4),
  reps Array(UInt32) CODEC(LZ4),
  stop_reps Array(UInt32) CODEC(LZ4),
  partition UInt16 CODEC(LZ4),
  log_seq UInt64 CODEC(Delta(8), LZ4),
  log_index UInt32 CODEC(LZ4),
  log_sub UInt32 CODEC(LZ4)
)
ENGINE = MergeTree
PARTITION BY task
ORDER BY (org_id, started_at, span_id)
COMMENT 'Texts on their way out of cold storage. Empty when none are.';

-- Restored texts count as if they had begun on the day of their restore.
ALTER TABLE span_texts ADD COLUMN IF NOT EXISTS restored_on Date COMMENT 'Day on which the text came back from cold storage; 1970-01-01 for one that never left' CODEC(ZSTD(1));

-- What a month's attributes become when they are cleared: still JSON.
ALTER TABLE spans MODIFY COLUMN attributes String DEFAULT '{}' CODEC(ZSTD(1));
