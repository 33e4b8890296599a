-- A part of span_texts holds the texts of few days, but its partition is the week in which they are dropped, which says nothing of
-- their times. The primary key leaves one granule of each part that has the organization, so a read of an hour or a week looked into
-- the columns and the text index of every part. The smallest and largest time of each part excludes the others: of 113 parts at
-- 10 million texts, one trace's range leaves two. log_seq does the same for the look that a move takes for repeats. Merges and moves
-- (sql/stores/landings.ts) write both; the statistics that the engine computes by default, of every column in merges alone, have no reader.
ALTER TABLE span_texts MODIFY SETTING auto_statistics_types = '';
ALTER TABLE span_texts ADD STATISTICS IF NOT EXISTS started_at, log_seq TYPE basic;
-- Computes them for the parts that are there, in the background: 10 million texts take half a minute.
ALTER TABLE span_texts MATERIALIZE STATISTICS started_at, log_seq SETTINGS mutations_sync = 0, alter_sync = 0;
