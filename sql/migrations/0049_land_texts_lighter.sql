-- A text is in span_texts_recent for a few seconds, so compressing it costs more than it saves. Of the 92 ms of CPU that 5,000 texts
-- took to land, LZ4 of the texts and their words took 46, and the 77 files of a wide part 11. A part of one file with plain texts takes
-- 35 ms and a third of the memory, and is 43 % larger. Parts that landed before are read as before.
ALTER TABLE span_texts_recent MODIFY SETTING min_bytes_for_wide_part = 1073741824;
ALTER TABLE span_texts_recent MODIFY COLUMN prompt CODEC(NONE), MODIFY COLUMN response CODEC(NONE), MODIFY COLUMN words CODEC(NONE);
-- Postings wait for as many parts as texts do before they are merged, for the reasons of 0044: their merges took 12 µs of CPU an event.
ALTER TABLE span_words MODIFY SETTING merge_selector_base = 8;
