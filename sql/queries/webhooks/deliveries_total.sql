SELECT uniqExact(at, event_id, attempt) AS total
FROM webhook_deliveries
WHERE /*include webhooks/filters.sql*/
