-- Attempts and ended deliveries of each receiver of an organization since a time. An attempt that was
-- written twice counts once.
SELECT
  target_id,
  count() AS attempts,
  countIf(outcome = 'delivered') AS delivered,
  countIf(outcome = 'failed') AS failed,
  countIf(outcome = 'dead-lettered') AS dead_lettered,
  toUnixTimestamp64Milli(max(at)) AS last_ms
FROM (
  SELECT target_id, at, event_id, attempt, any(outcome) AS outcome
  FROM webhook_deliveries
  WHERE org_id = {org_id:String} AND at >= now64(3) - toIntervalDay({days:UInt32})
  GROUP BY target_id, at, event_id, attempt
)
GROUP BY target_id
ORDER BY target_id
LIMIT {rows:UInt32}
