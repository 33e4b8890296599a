-- The texts are the left side, so that a query streams them; the engine keeps only the narrow columns
-- of the matching spans in memory. Conditions on org_id and started_at reach both sides, because
-- they are join keys.
CREATE OR REPLACE VIEW analyst_calls
(
  org_id LowCardinality(String) COMMENT 'Org that the span belongs to',
  trace_id String COMMENT 'Trace that the span belongs to',
  span_id String COMMENT 'Span that made the call',
  parent_span_id String COMMENT 'Span that called this one; empty for a root',
  kind LowCardinality(String) COMMENT 'llm, tool, event or app',
  name LowCardinality(String) COMMENT 'Model, chain, tool or event name',
  model LowCardinality(String) COMMENT 'Model, empty where none was called',
  provider LowCardinality(String) COMMENT 'Vendor that answered a model call; empty where unknown',
  outcome LowCardinality(String) COMMENT 'success, error or timeout',
  started_at DateTime64(3, 'UTC') COMMENT 'Start; bound every query by org_id and started_at, which are the key',
  duration_ms Int64 COMMENT 'End minus start, milliseconds',
  first_token_ms UInt32 COMMENT 'Milliseconds from the start to the first token; 0 where unknown',
  input_tokens UInt32 COMMENT 'Tokens of the prompt, cached ones included',
  output_tokens UInt32 COMMENT 'Tokens of the response',
  cost_usd Decimal(18, 12) COMMENT 'Cost, exact; sums do not drift',
  agent_id LowCardinality(String) COMMENT 'Agent, empty for none',
  environment LowCardinality(String) COMMENT 'Deployment environment, empty for none',
  prompt_name LowCardinality(String) COMMENT 'Registered prompt that the call used, empty for none',
  prompt_version LowCardinality(String) COMMENT 'Version of that prompt, empty for none',
  session_id String COMMENT 'Session, empty for none',
  user_id String COMMENT 'End user, empty for none',
  tags Array(LowCardinality(String)) COMMENT 'Tags of the event',
  prompt String COMMENT 'Conversation as JSON text of messages, or the tool''s input',
  response String COMMENT 'Text of the answer, or the tool''s output'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
COMMENT 'One row a span that has a prompt or a response, with both beside its numbers'
AS SELECT
  t.org_id AS org_id,
  t.trace_id AS trace_id,
  t.span_id AS span_id,
  s.parent_span_id AS parent_span_id,
  s.kind AS kind,
  s.name AS name,
  s.model AS model,
  s.provider AS provider,
  s.outcome AS outcome,
  t.started_at AS started_at,
  dateDiff('millisecond', s.started_at, s.ended_at) AS duration_ms,
  s.first_token_ms AS first_token_ms,
  s.input_tokens AS input_tokens,
  s.output_tokens AS output_tokens,
  s.cost_usd AS cost_usd,
  s.agent_id AS agent_id,
  s.environment AS environment,
  s.prompt_name AS prompt_name,
  s.prompt_version AS prompt_version,
  s.session_id AS session_id,
  s.user_id AS user_id,
  s.tags AS tags,
  t.prompt AS prompt,
  t.response AS response
FROM (
  SELECT org_id, started_at, trace_id, span_id, prompt, response, partition, log_seq, log_index, log_sub
  FROM span_texts
  UNION ALL
  SELECT org_id, started_at, trace_id, span_id, prompt, response, partition, log_seq, log_index, log_sub
  FROM span_texts_recent
  WHERE (partition, log_seq, log_index, log_sub) NOT IN (
    SELECT partition, log_seq, log_index, log_sub
    FROM span_texts
    WHERE log_seq >= (SELECT min(log_seq) FROM span_texts_recent)
  )
) AS t
INNER JOIN spans AS s
  ON s.org_id = t.org_id
  AND s.started_at = t.started_at
  AND s.partition = t.partition
  AND s.log_seq = t.log_seq
  AND s.log_index = t.log_index
  AND s.log_sub = t.log_sub;
