-- One row a span, narrow: prompt and response live in span_texts. Plain MergeTree: the pipeline lands each row exactly
-- once by (partition, log_seq, log_index, log_sub), so counts and sums need neither FINAL nor GROUP BY id.
--
-- ORDER BY: every read names an org and a time range, so org_id leads and started_at follows. trace_id and span_id break
-- ties, so that the spans of one trace lie together within a millisecond.
-- PARTITION BY month: deletes by age drop whole months; a backfill of a year makes 13 parts, not 365.
-- event_key: the 64 bits of the event's hex16 (event_id is 'evt_' || lower(hex(event_key))); the dedupe window is
-- rebuilt from it, 8 bytes an event.
-- attributes is a String holding the JSON as it was sent: the JSON type loses nulls, empty objects, the digits of large
-- integers and keys with dots, and refuses {"a": 1, "a.b": 2}.
-- cost_usd has 12 decimals: a price with up to 6 decimals per million tokens is exact for every token count.
-- ix_seq finds what has landed above a checkpoint; ix_received finds the dedupe window.
-- Aggregate projections answer cost by day without touching spans, and commit with their part, so they cannot drift.
CREATE TABLE IF NOT EXISTS spans (
  org_id LowCardinality(String),
  started_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  ended_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  received_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  trace_id String CODEC(ZSTD(1)),
  span_id String CODEC(ZSTD(1)),
  parent_span_id String CODEC(ZSTD(1)),
  event_key UInt64 CODEC(NONE),
  trace_key UInt64 MATERIALIZED sipHash64(trace_id) CODEC(ZSTD(1)),
  kind LowCardinality(String),
  name LowCardinality(String),
  model LowCardinality(String),
  source_format LowCardinality(String),
  outcome LowCardinality(String),
  agent_id LowCardinality(String),
  department LowCardinality(String),
  realm LowCardinality(String),
  session_id String CODEC(ZSTD(1)),
  user_id String CODEC(ZSTD(1)),
  tags Array(LowCardinality(String)),
  input_tokens UInt32 CODEC(T64, ZSTD(1)),
  output_tokens UInt32 CODEC(T64, ZSTD(1)),
  cached_input_tokens UInt32 CODEC(T64, ZSTD(1)),
  cost_usd Decimal(18, 12) CODEC(T64, ZSTD(1)),
  price_source LowCardinality(String),
  price_input_usd_per_mtok Nullable(Float64) CODEC(ZSTD(1)),
  price_output_usd_per_mtok Nullable(Float64) CODEC(ZSTD(1)),
  price_cached_input_usd_per_mtok Nullable(Float64) CODEC(ZSTD(1)),
  storage_bytes UInt32 CODEC(T64, ZSTD(1)),
  sandbox_seconds Decimal(18, 6) CODEC(T64, ZSTD(1)),
  attributes String CODEC(ZSTD(1)),
  sampled Bool,
  partition UInt16 CODEC(ZSTD(1)),
  log_seq UInt64 CODEC(Delta(8), ZSTD(1)),
  log_index UInt32 CODEC(ZSTD(1)),
  log_sub UInt32 CODEC(ZSTD(1)),
  INDEX ix_trace trace_key TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX ix_seq log_seq TYPE minmax GRANULARITY 1,
  INDEX ix_received received_at TYPE minmax GRANULARITY 1,
  PROJECTION p_model (SELECT org_id, toDate(started_at), model, sum(cost_usd), sum(input_tokens), sum(output_tokens), count() GROUP BY org_id, toDate(started_at), model),
  PROJECTION p_agent (SELECT org_id, toDate(started_at), agent_id, sum(cost_usd), sum(input_tokens), sum(output_tokens), count() GROUP BY org_id, toDate(started_at), agent_id),
  PROJECTION p_department (SELECT org_id, toDate(started_at), department, realm, sum(cost_usd), sum(input_tokens), sum(output_tokens), count() GROUP BY org_id, toDate(started_at), department, realm)
)
ENGINE = MergeTree
PARTITION BY toYYYYMM(started_at)
ORDER BY (org_id, started_at, trace_id, span_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, lightweight_mutation_projection_mode = 'rebuild';
