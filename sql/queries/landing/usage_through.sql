-- Newest log position of the usage rows of a partition, and the time at which the newest event was
-- received.
SELECT toString(max(log_seq)) AS seq, toString(toUnixTimestamp64Milli(max(last_received_at))) AS received_ms
FROM usage_events
WHERE partition = {partition:UInt16}
