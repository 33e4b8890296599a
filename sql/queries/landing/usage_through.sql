-- The newest usage row of a partition: its log position, and when its newest event was received.
SELECT toString(max(log_seq)) AS seq, toString(toUnixTimestamp64Milli(max(last_received_at))) AS received_ms
FROM usage_events
WHERE partition = {partition:UInt16}
