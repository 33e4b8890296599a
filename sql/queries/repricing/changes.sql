-- Amounts that a plan adds to the costs of traces and to use, by hour of receipt and day. The order
-- is fixed: messages are made of these rows, and made again after a crash.
SELECT
  c.trace_id AS trace_id,
  toUnixTimestamp(toStartOfHour(c.received_at)) * 1000 AS hour,
  toUInt16(toDate(c.started_at)) AS day,
  c.agent_id AS agent_id,
  c.model AS model,
  c.department AS department,
  c.realm AS realm,
  toString(sum(toDecimal128(c.cost_usd, 12) - toDecimal128(c.old_cost_usd, 12))) AS delta_usd
FROM span_corrections AS c
WHERE plan_id = {plan_id:String}
GROUP BY trace_id, hour, day, agent_id, model, department, realm
HAVING sum(toDecimal128(c.cost_usd, 12) - toDecimal128(c.old_cost_usd, 12)) != 0
ORDER BY trace_id, hour, day, agent_id, model, department, realm
