CREATE OR REPLACE VIEW analyst_usage
(
  org_id LowCardinality(String) COMMENT 'Org',
  hour DateTime('UTC') COMMENT 'Hour in which the events were received',
  agent_id LowCardinality(String) COMMENT 'Agent, empty for none',
  events UInt64 COMMENT 'Events, whatever sampling kept of them',
  input_tokens UInt64 COMMENT 'Input tokens',
  output_tokens UInt64 COMMENT 'Output tokens',
  storage_mb Float64 COMMENT 'Bytes of the events / 1,000,000',
  sandbox_seconds Decimal(38, 6) COMMENT 'Sandbox time',
  cost_usd Decimal(38, 12) COMMENT 'Cost, exact'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
COMMENT 'One row an hour and agent of an org: what counts against budgets; kept longer than spans'
AS SELECT
  u.org_id AS org_id,
  u.hour AS hour,
  u.agent_id AS agent_id,
  sum(u.events) AS events,
  sum(u.input_tokens) AS input_tokens,
  sum(u.output_tokens) AS output_tokens,
  sum(u.storage_bytes) / 1000000 AS storage_mb,
  sum(u.sandbox_seconds) AS sandbox_seconds,
  sum(u.cost_usd) AS cost_usd
FROM usage_events AS u
GROUP BY u.org_id, u.hour, u.agent_id;
