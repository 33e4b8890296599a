-- Prompts and responses, in two tables of the same columns.
--
-- The text index is the dearest part of an insert, and the cheaper per row the larger the block. So texts land at once in
-- span_texts_recent (LZ4, no index, never merged), where reads by id find them, and a mover takes whole parts of it into
-- span_texts in large blocks every few seconds: there they are searchable. A row is in one table or the other, for the
-- length of a move in both; readers of both drop the repeat by (partition, log_seq, log_index, log_sub).
--
-- span_texts ORDER BY (org_id, started_at, span_id): search reads one org and a time range; trace_id comes from
-- the row. Granules of 128 rows keep the read of fifty shown texts small.
-- PARTITION BY week of drop_on (toDate(started_at) + the org's full_prompt_response_days, stamped on landing): text goes
-- by dropped partitions, not by rewriting parts.
-- ix_doc splits at every ASCII character that is no letter or digit. extra_words holds, in lower case, the words that this
-- split gets wrong (those with or beside a character outside ASCII), so that each word of a text is in its index.
-- BM25 without reading text: dl is the number of words; reps holds a hash (FNV-1a 32) of every occurrence of a word after its
-- first, stop_reps the same for stop words, so tf = 1 + countEqual(reps, hash). p_stat answers N and avgdl.
CREATE TABLE IF NOT EXISTS span_texts (
  org_id LowCardinality(String),
  started_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  trace_id String CODEC(ZSTD(1)),
  span_id String CODEC(ZSTD(1)),
  trace_key UInt64 MATERIALIZED sipHash64(trace_id) CODEC(ZSTD(1)),
  event_key UInt64 CODEC(NONE),
  model LowCardinality(String),
  outcome LowCardinality(String),
  cost_usd Decimal(18, 12) CODEC(T64, ZSTD(1)),
  prompt String CODEC(ZSTD(1)),
  response String CODEC(ZSTD(1)),
  extra_words String CODEC(ZSTD(1)),
  dl UInt32 CODEC(ZSTD(1)),
  reps Array(UInt32) CODEC(ZSTD(1)),
  stop_reps Array(UInt32) CODEC(ZSTD(1)),
  drop_on Date CODEC(ZSTD(1)),
  partition UInt16 CODEC(ZSTD(1)),
  log_seq UInt64 CODEC(Delta(8), ZSTD(1)),
  log_index UInt32 CODEC(ZSTD(1)),
  log_sub UInt32 CODEC(ZSTD(1)),
  INDEX ix_doc concat(prompt, '\n', response, ' ', extra_words) TYPE text(tokenizer = 'splitByNonAlpha', preprocessor = lower(concat(prompt, '\n', response, ' ', extra_words))),
  INDEX ix_seq log_seq TYPE minmax GRANULARITY 16,
  PROJECTION p_stat (SELECT org_id, toDate(started_at), countIf(dl > 0), sum(dl) GROUP BY org_id, toDate(started_at))
)
ENGINE = MergeTree
PARTITION BY toMonday(drop_on)
ORDER BY (org_id, started_at, span_id)
SETTINGS index_granularity = 128, min_compress_block_size = 8192, fsync_after_insert = 1, fsync_part_directory = 1, lightweight_mutation_projection_mode = 'rebuild';

CREATE TABLE IF NOT EXISTS span_texts_recent (
  org_id LowCardinality(String),
  started_at DateTime64(3, 'UTC') CODEC(Delta(8), LZ4),
  trace_id String CODEC(LZ4),
  span_id String CODEC(LZ4),
  trace_key UInt64 MATERIALIZED sipHash64(trace_id) CODEC(LZ4),
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
  drop_on Date CODEC(LZ4),
  partition UInt16 CODEC(LZ4),
  log_seq UInt64 CODEC(Delta(8), LZ4),
  log_index UInt32 CODEC(LZ4),
  log_sub UInt32 CODEC(LZ4)
)
ENGINE = MergeTree
ORDER BY (org_id, started_at, span_id)
SETTINGS max_bytes_to_merge_at_max_space_in_pool = 1, fsync_after_insert = 1, fsync_part_directory = 1;
