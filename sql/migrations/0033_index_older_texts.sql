-- Writes the words of older rows and indexes them, as a mutation: the engine rewrites part after part in the background, goes on
-- after a restart, and accepts inserts meanwhile. Until a part is rewritten, a search reads its texts, so a search over much older
-- text may take too long. A repeat of this statement costs a second pass and changes nothing.
ALTER TABLE span_texts MATERIALIZE COLUMN words, MATERIALIZE INDEX ix_words;
