-- Partition 65534 of the fences holds query ids of landings whose answer was lost: one that reaches the store late writes nothing.
-- No connection lives for a day.
ALTER TABLE landing_fences MODIFY TTL toDateTime(at) + INTERVAL 1 DAY DELETE WHERE partition = 65534 SETTINGS materialize_ttl_after_modify = 0;
