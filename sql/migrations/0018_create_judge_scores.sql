-- Scores that judges gave: one row a judgement. Who scores again after a crash writes the same key, so a repeat is replaced; readers
-- take the newest row of a key (FINAL, which stays within the key's prefix).
--
-- ORDER BY: an eval reads its judge's rows in the order of traces; live scores (eval_id '') of a judge lie together.
-- started_at is the trace's, for joins with traces and spans, whose keys it bounds.
CREATE TABLE IF NOT EXISTS judge_scores (
  org_id LowCardinality(String) COMMENT 'Org that the trace belongs to',
  judge_id LowCardinality(String) COMMENT 'Judge that scored',
  eval_id String COMMENT 'Eval or dataset run that asked for it; empty for live traffic' CODEC(ZSTD(1)),
  trace_id String COMMENT 'Trace that was judged' CODEC(ZSTD(1)),
  judge_version UInt32 COMMENT 'Version of the judge that scored' CODEC(ZSTD(1)),
  trace_key UInt64 MATERIALIZED sipHash64(trace_id) CODEC(ZSTD(1)),
  judge_name LowCardinality(String) COMMENT 'Its name at that time',
  agent_id LowCardinality(String) COMMENT 'Agent of the trace, empty for none',
  started_at DateTime64(3, 'UTC') COMMENT 'Start of the trace' CODEC(Delta(8), ZSTD(1)),
  item_index UInt32 COMMENT 'Place of the item in its dataset; 0 where there is none' CODEC(ZSTD(1)),
  score Nullable(Float64) COMMENT 'null where the judge failed' CODEC(ZSTD(1)),
  verdict LowCardinality(String) COMMENT 'pass, warn, fail or error',
  reason String COMMENT 'What the judge says of it' CODEC(ZSTD(1)),
  scored_at DateTime64(3, 'UTC') COMMENT 'When it scored' CODEC(Delta(8), ZSTD(1)),
  partition UInt16 COMMENT 'Partition of the log, for live scores of rules' CODEC(ZSTD(1)),
  log_seq UInt64 COMMENT 'Newest message of the trace when it was scored' CODEC(Delta(8), ZSTD(1)),
  INDEX ix_trace trace_key TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX ix_seq log_seq TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(scored_at)
PARTITION BY toYYYYMM(scored_at)
ORDER BY (org_id, judge_id, eval_id, trace_id, item_index, judge_version)
SETTINGS index_granularity = 2048, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'One row a judgement of a trace by a judge.';
