-- The traces of one session or one user lie scattered over an org's time. A filter of each granule's values skips most
-- granules, where the list would else read a column of long texts from end to end, twice.
ALTER TABLE traces ADD INDEX IF NOT EXISTS ix_session session_id TYPE bloom_filter(0.01) GRANULARITY 1;
ALTER TABLE traces ADD INDEX IF NOT EXISTS ix_user user_id TYPE bloom_filter(0.01) GRANULARITY 1;
