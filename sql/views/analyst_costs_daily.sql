-- Grouped like the projection p_model, so that the view reads days, not spans.
CREATE OR REPLACE VIEW analyst_costs_daily
(
  org_id LowCardinality(String) COMMENT 'Org',
  day Date COMMENT 'Day on which the spans started, UTC',
  model LowCardinality(String) COMMENT 'Model, empty where none was called',
  spans UInt64 COMMENT 'Number of spans',
  input_tokens UInt64 COMMENT 'Input tokens',
  output_tokens UInt64 COMMENT 'Output tokens',
  cost_usd Decimal(38, 12) COMMENT 'Cost, exact'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
COMMENT 'One row a day and model of an org'
AS SELECT
  s.org_id AS org_id,
  toDate(s.started_at) AS day,
  s.model AS model,
  count() AS spans,
  sum(s.input_tokens) AS input_tokens,
  sum(s.output_tokens) AS output_tokens,
  sum(s.cost_usd) AS cost_usd
FROM spans AS s
GROUP BY s.org_id, toDate(s.started_at), s.model;
