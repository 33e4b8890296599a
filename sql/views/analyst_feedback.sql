-- FINAL leaves one row of a score that landed twice. A row without a name is the deletion of the score with its id.
CREATE OR REPLACE VIEW analyst_feedback
(
  org_id LowCardinality(String) COMMENT 'Org that the trace belongs to',
  trace_id String COMMENT 'Trace that was scored',
  span_id String COMMENT 'Span that was scored; empty for the trace as a whole',
  trace_started_at DateTime64(3, 'UTC') COMMENT 'Start of the trace',
  score_id String COMMENT 'score_ and 32 hex digits',
  name LowCardinality(String) COMMENT 'What is scored: helpful, stars',
  data_type Enum8('numeric' = 1, 'boolean' = 2, 'categorical' = 3) COMMENT 'Which kind of value',
  number Nullable(Float64) COMMENT 'The number; of a boolean 1 or 0; null for a category',
  category String COMMENT 'The category; empty otherwise',
  comment String COMMENT 'In the words of whoever scored',
  author_type LowCardinality(String) COMMENT 'user, api_key or otel',
  author_id String COMMENT 'Id of the user or key',
  created_at DateTime64(3, 'UTC') COMMENT 'When it was given'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
COMMENT 'One row a score that a person or an application gave'
AS SELECT
  org_id,
  trace_id,
  span_id,
  started_at AS trace_started_at,
  score_id,
  name,
  data_type,
  number,
  text AS category,
  comment,
  author_type,
  author_id,
  created_at
FROM user_scores FINAL
WHERE name != '' AND (org_id, score_id) NOT IN (SELECT org_id, score_id FROM user_scores WHERE name = '');
