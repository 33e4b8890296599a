-- When anything about an agent landed last, by the store's clock; 0 for never.
SELECT toUnixTimestamp64Milli(max(landed_at)) AS landed_ms FROM agent_activity
