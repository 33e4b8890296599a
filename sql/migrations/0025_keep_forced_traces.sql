-- From which message on every event of a trace is stored in full, because an event of that message asks for it (force_trace).
ALTER TABLE traces ADD COLUMN IF NOT EXISTS forced_from UInt64 DEFAULT 0 COMMENT 'log_seq of the first message with an event that forces the trace to be kept; 0 for none' CODEC(ZSTD(1)) AFTER sampled;
