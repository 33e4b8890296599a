-- Summary of a plan. Returns no row when the plan does not exist.
SELECT
  any(c.org_id) AS org,
  toUnixTimestamp64Milli(min(c.started_at)) AS from_ms,
  toUnixTimestamp64Milli(max(c.started_at)) AS to_ms,
  count() AS spans,
  countIf((c.old_price_source = 'missing') != (c.price_source = 'missing')) AS marks
FROM span_corrections AS c
WHERE plan_id = {plan_id:String}
HAVING count() > 0
