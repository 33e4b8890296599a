-- FINAL cancels pairs that no merge has cancelled yet; both rows of a pair are in the same
-- partition.
CREATE OR REPLACE VIEW analyst_traces
(
  org_id LowCardinality(String) COMMENT 'Org that the trace belongs to',
  trace_id String COMMENT 'Unique within an org',
  root_span_id String COMMENT 'Earliest span without a parent; empty while none has come',
  root_span_name LowCardinality(String) COMMENT 'Name of the root span',
  agent_id LowCardinality(String) COMMENT 'Agent of the root, else the first seen; empty for none',
  outcome LowCardinality(String) COMMENT 'error if any span is error, else timeout if any is, else success',
  started_at DateTime64(3, 'UTC') COMMENT 'First start of a span',
  ended_at DateTime64(3, 'UTC') COMMENT 'Last end of a span',
  duration_ms UInt64 COMMENT 'Last end minus first start, milliseconds',
  spans UInt32 COMMENT 'Number of spans',
  input_tokens UInt64 COMMENT 'Sum over the spans',
  output_tokens UInt64 COMMENT 'Sum over the spans',
  cost_usd Decimal(38, 12) COMMENT 'Sum over the spans, exact',
  session_id String COMMENT 'Session, empty for none',
  user_id String COMMENT 'End user, empty for none',
  tags Array(LowCardinality(String)) COMMENT 'Union of the spans'' tags',
  sampled Bool COMMENT 'True when any event of the trace is stored in full'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
COMMENT 'One row a trace, as of now'
AS SELECT
  org_id,
  trace_id,
  root_span_id,
  root_span_name,
  agent_id,
  outcome,
  started_at,
  ended_at,
  duration_ms,
  spans,
  input_tokens,
  output_tokens,
  cost_usd,
  session_id,
  user_id,
  tags,
  sampled
FROM traces FINAL
WHERE sign = 1;
