-- Who changed what, by which request. A mutation has two rows that replace each other: its intent, written before it was
-- tried, and its outcome. Whichever comes first, the outcome wins (version), and a row that lands twice is one.
--
-- ORDER BY (org_id, created_at, audit_id): the log of an org is read by time; both rows of a mutation carry the time of its
-- intent, so they have one key and one partition. Partitions are years: nothing has to be replaced across them, and one that
-- gets no more rows for a day is merged into one part, which FINAL reads as fast as any other. Every insert is synced: a
-- message leaves its queue right after it, and there are few of them.
CREATE TABLE IF NOT EXISTS audit_log (
  org_id LowCardinality(String) COMMENT 'Org; empty for a mutation that never came to name one',
  created_at DateTime64(3, 'UTC') COMMENT 'When the mutation was about to happen' CODEC(Delta(8), ZSTD(1)),
  audit_id String COMMENT 'aud_ and 32 hex digits' CODEC(ZSTD(1)),
  outcome Enum8('unknown' = 0, 'done' = 1, 'failed' = 2) COMMENT 'unknown: whoever did it died before it could say',
  actor_type LowCardinality(String) COMMENT 'user, api_key, operator or system',
  actor_id String COMMENT 'Id of the user or key, or the name of the job' CODEC(ZSTD(1)),
  action LowCardinality(String) COMMENT 'noun.verb: member.role_change',
  target_type LowCardinality(String) COMMENT 'What was changed: member',
  target_id String COMMENT 'Empty while the outcome is unknown for a thing that was to be made' CODEC(ZSTD(1)),
  changes String COMMENT 'JSON object of what changed, without secrets' CODEC(ZSTD(1)),
  request_id String COMMENT 'Empty for what no request asked for' CODEC(ZSTD(1)),
  ip String COMMENT 'Of the caller; empty where unknown' CODEC(ZSTD(1)),
  delete_on Date COMMENT 'When the row is due, by the retention policy of the day it landed' CODEC(ZSTD(1)),
  version UInt8 COMMENT '1: the intent, 2: the outcome'
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYear(created_at)
ORDER BY (org_id, created_at, audit_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1
COMMENT 'Mutations of every org. Read it with FINAL: the rows of a mutation replace each other.';
