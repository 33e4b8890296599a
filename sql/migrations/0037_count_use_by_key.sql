-- Which API key used what, for the budgets of keys. Rows that landed before the column exists belong to no key. A worker of the
-- version before lands rows without it: while both run, what such a worker lands counts for the organization, and for a key
-- only once every worker is of this version.
ALTER TABLE usage_events
  ADD COLUMN IF NOT EXISTS key_id LowCardinality(String) DEFAULT '' COMMENT 'API key that sent the events, empty for none' AFTER agent_id;
