-- Time at which the newest landed event of each partition was received.
SELECT partition, toString(toUnixTimestamp64Milli(max(last_received_at))) AS received_ms
FROM usage_events
WHERE partition IN {partitions:Array(UInt16)}
GROUP BY partition
