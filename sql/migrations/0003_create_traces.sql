-- One row a trace, kept right by pairs: each landing that touches a trace writes its old row with sign -1 and its new row
-- with sign +1 in one block. sum(sign) is exact without FINAL, and a filter takes both rows of a pair or none.
--
-- ORDER BY (org_id, anchor, trace_key): anchor is started_at as first seen and never changes, so that the rows of a pair
-- meet in one partition and collapse; it follows the trace's time closely, so lists by time read few granules.
-- version is the sequence of the newest log message that the row holds: after a crash it tells what is in already.
CREATE TABLE IF NOT EXISTS traces (
  org_id LowCardinality(String),
  anchor DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  trace_key UInt64 CODEC(NONE),
  trace_id String CODEC(ZSTD(1)),
  started_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  ended_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  duration_ms UInt64 MATERIALIZED toUInt64(greatest(0, dateDiff('millisecond', started_at, ended_at))) CODEC(T64, ZSTD(1)),
  root_at Nullable(DateTime64(3, 'UTC')) CODEC(ZSTD(1)),
  root_span_id String CODEC(ZSTD(1)),
  root_span_name LowCardinality(String),
  agent_id LowCardinality(String),
  outcome LowCardinality(String),
  session_id String CODEC(ZSTD(1)),
  user_id String CODEC(ZSTD(1)),
  tags Array(LowCardinality(String)),
  spans UInt32 CODEC(T64, ZSTD(1)),
  input_tokens UInt64 CODEC(T64, ZSTD(1)),
  output_tokens UInt64 CODEC(T64, ZSTD(1)),
  cost_usd Decimal(38, 12) CODEC(ZSTD(1)),
  sampled Bool,
  partition UInt16 CODEC(ZSTD(1)),
  log_seq UInt64 CODEC(Delta(8), ZSTD(1)),
  sign Int8,
  version UInt64 CODEC(Delta(8), ZSTD(1)),
  INDEX ix_key trace_key TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX ix_seq log_seq TYPE minmax GRANULARITY 1,
  INDEX ix_tags tags TYPE text(tokenizer = 'array')
)
ENGINE = VersionedCollapsingMergeTree(sign, version)
PARTITION BY toYYYYMM(anchor)
ORDER BY (org_id, anchor, trace_key)
SETTINGS index_granularity = 2048, fsync_after_insert = 1, fsync_part_directory = 1;

-- Trace id -> org and time range, over all orgs: tells 404 from 403, and gives the bounds of every read by id. min and max:
-- a repeated row changes nothing, so a materialized view may feed it.
CREATE TABLE IF NOT EXISTS trace_lookup (
  trace_key UInt64 CODEC(NONE),
  org_id LowCardinality(String),
  first_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_at SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
)
ENGINE = AggregatingMergeTree
ORDER BY (trace_key, org_id)
SETTINGS index_granularity = 1024;

CREATE MATERIALIZED VIEW IF NOT EXISTS trace_lookup_mv TO trace_lookup AS
SELECT sipHash64(s.trace_id) AS trace_key, s.org_id AS org_id, min(s.started_at) AS first_at, max(s.started_at) AS last_at
FROM spans AS s
GROUP BY trace_key, org_id;
