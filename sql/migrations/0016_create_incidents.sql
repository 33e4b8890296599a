-- Failing traces and the incidents that they are.
--
-- incident_traces has a row for each failing trace. One whose completion is told twice may have two; readers count a trace once
-- by its key. ORDER BY: the traces of a cluster are read by the time at which they failed. p_trace tells whether a trace is
-- counted already: a look for each, so granules are small. PARTITION BY the day of counting, which no sender can spread: rows
-- leave by whole days after 90, and whether a trace is counted is looked up in two of them.
CREATE TABLE IF NOT EXISTS incident_traces (
  org_id LowCardinality(String),
  cluster_id String COMMENT 'clu_ and 16 hex digits: follows from agent, root span and error' CODEC(ZSTD(1)),
  at DateTime64(3, 'UTC') COMMENT 'When the trace ended, or was complete if that came first' CODEC(Delta(8), ZSTD(1)),
  trace_key UInt64 MATERIALIZED sipHash64(trace_id) CODEC(NONE),
  trace_id String CODEC(ZSTD(1)),
  started_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)),
  agent_id LowCardinality(String),
  root_span_name LowCardinality(String),
  error String COMMENT 'What failed, without numbers, ids and quoted parts' CODEC(ZSTD(1)),
  sample String COMMENT 'What failed, as it was sent' CODEC(ZSTD(1)),
  counted_at DateTime('UTC') DEFAULT now() CODEC(Delta(4), ZSTD(1)),
  PROJECTION p_trace (SELECT org_id, trace_key, cluster_id, at, counted_at ORDER BY org_id, trace_key)
)
ENGINE = MergeTree
PARTITION BY toDate(counted_at)
ORDER BY (org_id, cluster_id, at)
TTL counted_at + INTERVAL 90 DAY DELETE
SETTINGS index_granularity = 256, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1, lightweight_mutation_projection_mode = 'rebuild'
COMMENT 'Failing traces by cluster. A trace may have two rows: count by trace_key.';

-- One row an incident; a later state of it replaces the row. While one is open its traces are counted where they lie
-- (incident_traces of the cluster, from from_at on); what they came to is written down when it is resolved.
CREATE TABLE IF NOT EXISTS incidents (
  org_id LowCardinality(String) COMMENT 'Org',
  incident_id String COMMENT 'inc_ and 16 hex digits',
  cluster_id String COMMENT 'clu_ and 16 hex digits; an org has one open incident of a cluster at most',
  status Enum8('open' = 1, 'resolved' = 2),
  agent_id LowCardinality(String) COMMENT 'Agent of its traces, empty for none',
  root_span_name LowCardinality(String) COMMENT 'Name of the root span of its traces, empty for none',
  error String COMMENT 'Error of its traces, without numbers, ids and quoted parts' CODEC(ZSTD(1)),
  sample String COMMENT 'One such error as it was sent' CODEC(ZSTD(1)),
  opened_at DateTime64(3, 'UTC') COMMENT 'When it was found',
  from_at DateTime64(3, 'UTC') COMMENT 'Its traces failed from here on …',
  until_at DateTime64(3, 'UTC') COMMENT '… up to here; of no meaning while it is open',
  trace_count UInt64 COMMENT 'When it was resolved; before that, when it was opened',
  first_trace_at DateTime64(3, 'UTC') COMMENT 'Start of its first trace, likewise',
  last_trace_at DateTime64(3, 'UTC') COMMENT 'Start of its last trace, likewise',
  resolved_at DateTime64(3, 'UTC') COMMENT 'Of no meaning while it is open',
  resolved_by String COMMENT 'auto, or the id of the user or API key; empty while it is open',
  version UInt64 COMMENT 'The newest state of an incident holds'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (org_id, incident_id)
SETTINGS index_granularity = 1024, fsync_after_insert = 1, fsync_part_directory = 1
COMMENT 'Incidents, one row each. Read it with FINAL.';
