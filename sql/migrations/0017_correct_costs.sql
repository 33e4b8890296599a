-- What a correction of costs adds is a usage row of its own, marked with the message that it came from: a message that is sent
-- twice is recognised by it, however long ago it landed. 0 everywhere else, so nearly every granule is passed over.
ALTER TABLE usage_events
  ADD COLUMN IF NOT EXISTS correction UInt64 DEFAULT 0 COMMENT 'Message that corrected costs, which the row stands for; 0 for what was used' CODEC(ZSTD(1)) AFTER outcome_values;
ALTER TABLE usage_events ADD INDEX IF NOT EXISTS ix_correction correction TYPE minmax GRANULARITY 1;

-- The costs that a repricing is about to correct, span by span: written before anything is changed, taken away when all of it
-- is. PARTITION BY plan_id: a plan goes by dropping its partition, so that nobody takes away another's.
CREATE TABLE IF NOT EXISTS span_corrections (
  plan_id String COMMENT 'Repricing, one step of it',
  org_id LowCardinality(String) COMMENT 'Org',
  partition UInt16 COMMENT 'Place of the span in the log, as in spans' CODEC(ZSTD(1)),
  log_seq UInt64 CODEC(Delta(8), ZSTD(1)),
  log_index UInt32 CODEC(ZSTD(1)),
  log_sub UInt32 CODEC(ZSTD(1)),
  started_at DateTime64(3, 'UTC') COMMENT 'Of the span' CODEC(Delta(8), ZSTD(1)),
  received_at DateTime64(3, 'UTC') COMMENT 'Of the span' CODEC(Delta(8), ZSTD(1)),
  trace_id String COMMENT 'Of the span' CODEC(ZSTD(1)),
  agent_id String COMMENT 'Of the span' CODEC(ZSTD(1)),
  model String COMMENT 'Of the span' CODEC(ZSTD(1)),
  department String COMMENT 'Of the span' CODEC(ZSTD(1)),
  realm String COMMENT 'Of the span' CODEC(ZSTD(1)),
  old_cost_usd Decimal(18, 12) COMMENT 'Cost as it was' CODEC(ZSTD(1)),
  old_price_source String COMMENT 'Where its price was from' CODEC(ZSTD(1)),
  cost_usd Decimal(18, 12) COMMENT 'Cost as it is to be' CODEC(ZSTD(1)),
  price_source String COMMENT 'Where its price is from' CODEC(ZSTD(1)),
  price_input_usd_per_mtok Nullable(Float64) COMMENT 'Price, USD per million input tokens' CODEC(ZSTD(1)),
  price_output_usd_per_mtok Nullable(Float64) COMMENT 'Price, USD per million output tokens' CODEC(ZSTD(1)),
  price_cached_input_usd_per_mtok Nullable(Float64) COMMENT 'Price, USD per million cached input tokens' CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY plan_id
ORDER BY (partition, log_seq, log_index, log_sub)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Costs that a repricing under way corrects. Empty when none is.';
