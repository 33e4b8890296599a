-- Time of the newest landing about any agent, by the store's clock; 0 if there is none.
SELECT toUnixTimestamp64Milli(max(landed_at)) AS landed_ms FROM agent_activity
