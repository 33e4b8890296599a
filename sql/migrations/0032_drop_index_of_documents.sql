-- No query asks the index over prompt, response and extra_words any more: it costs half of an insert.
ALTER TABLE span_texts DROP INDEX IF EXISTS ix_doc;
ALTER TABLE span_texts COMMENT COLUMN extra_words 'Empty in rows with words of the pipeline; no query reads it';
