-- What people and applications say of traces: one row a score. Landed from a queue, maybe twice; rows of one key are one (FINAL).
--
-- ORDER BY: scores are read by trace, and counted by name and time; the trace's start bounds both.
CREATE TABLE IF NOT EXISTS user_scores (
  org_id LowCardinality(String) COMMENT 'Org that the trace belongs to',
  name LowCardinality(String) COMMENT 'What is scored: helpful, stars',
  started_at DateTime64(3, 'UTC') COMMENT 'Start of the trace' CODEC(Delta(8), ZSTD(1)),
  trace_id String COMMENT 'Trace that was scored' CODEC(ZSTD(1)),
  score_id String COMMENT 'score_ and 32 hex digits' CODEC(ZSTD(1)),
  trace_key UInt64 MATERIALIZED sipHash64(trace_id) CODEC(ZSTD(1)),
  span_id String COMMENT 'Span that was scored; empty for the trace as a whole' CODEC(ZSTD(1)),
  data_type Enum8('numeric' = 1, 'boolean' = 2, 'categorical' = 3) COMMENT 'Which kind of value',
  number Nullable(Float64) COMMENT 'The number; of a boolean 1 or 0; null for a category' CODEC(ZSTD(1)),
  text String COMMENT 'The category; empty otherwise' CODEC(ZSTD(1)),
  comment String COMMENT 'In the words of whoever scored' CODEC(ZSTD(1)),
  author_type LowCardinality(String) COMMENT 'user or api_key',
  author_id String COMMENT 'Id of the user or key' CODEC(ZSTD(1)),
  created_at DateTime64(3, 'UTC') COMMENT 'When it was given' CODEC(Delta(8), ZSTD(1)),
  INDEX ix_trace trace_key TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(started_at)
ORDER BY (org_id, name, started_at, trace_id, score_id)
SETTINGS index_granularity = 2048, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Scores that people and applications gave: one row a score. Read it with FINAL.';
