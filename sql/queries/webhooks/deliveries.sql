-- Attempts of one endpoint, newest first. An attempt that was written twice appears once.
SELECT event_id, event, attempt, outcome, status_code, error, duration_ms, at
FROM webhook_deliveries
WHERE /*include webhooks/filters.sql*/
ORDER BY at DESC, event_id DESC, attempt DESC
LIMIT 1 BY at, event_id, attempt
LIMIT {rows:UInt32} OFFSET {skip:UInt64}
