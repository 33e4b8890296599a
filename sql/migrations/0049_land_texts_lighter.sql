-- A text is in span_texts_recent for a few seconds, so compressing it costs more than it saves: of the 92 ms of CPU that 5,000 texts took to land,
-- LZ4 of the texts and their words took 46, and the files of a wide part (four for each column) 11. Parts of one file with plain texts
-- take 35 ms and a third of the memory, and are 43 % larger. Parts that landed before are read as before.
ALTER TABLE span_texts_recent MODIFY SETTING min_bytes_for_wide_part = 1073741824;
ALTER TABLE span_texts_recent MODIFY COLUMN prompt CODEC(NONE), MODIFY COLUMN response CODEC(NONE), MODIFY COLUMN words CODEC(NONE);
