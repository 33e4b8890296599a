-- Deleting a score looks it up by its id, which is no prefix of the key: without this index the lookup reads the ids of all scores of
-- the organization. Rows that landed before are indexed in the background; until then their parts are read as before. A process of
-- the version before writes and reads the table as it did.
ALTER TABLE user_scores ADD INDEX IF NOT EXISTS ix_score_id score_id TYPE bloom_filter(0.01) GRANULARITY 1;
ALTER TABLE user_scores MATERIALIZE INDEX ix_score_id SETTINGS mutations_sync = 0, alter_sync = 0;
