-- A page of the trace list reads the traces that started within a stretch of time that ends at its cursor. The key has
-- anchor, which is at or after started_at without bound, so the key alone bounds such a read on one side only; this index
-- bounds it on the other, which makes the 500th page cost what the first costs.
ALTER TABLE traces ADD INDEX IF NOT EXISTS ix_started started_at TYPE minmax GRANULARITY 1;
