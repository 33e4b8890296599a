-- FINAL leaves one row of a score that was written twice.
CREATE OR REPLACE VIEW analyst_scores
(
  org_id LowCardinality(String) COMMENT 'Org that the trace belongs to',
  trace_id String COMMENT 'Trace that was judged',
  agent_id LowCardinality(String) COMMENT 'Agent of the trace, empty for none',
  trace_started_at DateTime64(3, 'UTC') COMMENT 'Start of the trace',
  judge_id LowCardinality(String) COMMENT 'Judge that scored',
  judge_name LowCardinality(String) COMMENT 'Its name at that time',
  judge_version UInt32 COMMENT 'Its version at that time',
  eval_id String COMMENT 'Eval or dataset run that asked for it; empty for live traffic',
  item_index UInt32 COMMENT 'Place of the item in its dataset; 0 where there is none',
  score Nullable(Float64) COMMENT 'null where the judge failed',
  verdict LowCardinality(String) COMMENT 'pass, warn, fail or error',
  reason String COMMENT 'What the judge says of it; empty where a rule passed',
  scored_at DateTime64(3, 'UTC') COMMENT 'When it scored'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
COMMENT 'One row a judgement of a trace by a judge'
AS SELECT
  org_id,
  trace_id,
  agent_id,
  started_at AS trace_started_at,
  judge_id,
  judge_name,
  judge_version,
  eval_id,
  item_index,
  score,
  verdict,
  reason,
  scored_at
FROM judge_scores FINAL;
