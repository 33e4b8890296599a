-- What an erasure takes away, written down before anything goes: whoever goes on after a crash takes the same traces, of which half
-- may be gone by then. PARTITION BY job: what is done goes by dropping its partition.
CREATE TABLE IF NOT EXISTS erasures (
  job_id String COMMENT 'Job that erases',
  kind Enum8('trace' = 1, 'day' = 2, 'found' = 3) COMMENT 'trace: one to erase; day: one on which its spans began; found: rows of a place before any went',
  name String COMMENT 'Id of the trace; days since 1970-01-01; the place' CODEC(ZSTD(1)),
  trace_key UInt64 MATERIALIZED sipHash64(name),
  rows UInt64 COMMENT 'Spans of the trace or day, or rows of the place'
)
ENGINE = MergeTree
PARTITION BY job_id
ORDER BY (job_id, kind, name)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'What erasures under way take away. Empty when none is.';
