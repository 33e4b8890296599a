-- The words of a text, as the pipeline splits them (ops/adr/0047), in a column of their own: every word of the plain text of prompt
-- and response in order, with a space between each and the next. Search asks this column; ix_words is its index. A word has no
-- character at which splitByNonAlpha splits, and such a split is all that the index does.
--
-- Rows without the column (those that landed before, those that a process of the version before lands, and those of older objects
-- of cold storage) take their words from the default: nearly the words of the pipeline, as the engine can make them. It removes
-- keys, roles, types and ids of JSON by their looks, and replaces escapes by spaces. dl and reps of these rows stay as counted.
--
-- While old and new processes run side by side: an old worker lands without the column, and an old API searches texts without an
-- index once the next migration has dropped ix_doc, which is slow but right, except for words outside ASCII of new rows.
ALTER TABLE span_texts_recent ADD COLUMN IF NOT EXISTS words String DEFAULT arrayStringConcat(arrayFlatten(arrayMap(
        text -> if(length(text) = lengthUTF8(text), tokens(lower(text)),
          arrayFlatten(arrayMap(
            word -> if(NOT match(word, '^[\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Hangul}\\p{Thai}ー]') OR lengthUTF8(word) < 2, [word],
              arrayMap(place -> substringUTF8(word, place, 2), range(1, lengthUTF8(word)))),
            extractAll(
              replaceRegexpAll(
                replaceAll(replaceAll(normalizeUTF8NFC(replaceRegexpAll(normalizeUTF8NFD(lowerUTF8(normalizeUTF8NFKC(text))), '[\\x{0300}-\\x{036F}\\x{0483}-\\x{0487}\\x{0591}-\\x{05BD}\\x{05BF}\\x{05C1}-\\x{05C2}\\x{05C4}-\\x{05C5}\\x{05C7}\\x{0610}-\\x{061A}\\x{064B}-\\x{065F}\\x{0670}\\x{1AB0}-\\x{1ACE}\\x{1DC0}-\\x{1DFF}\\x{20D0}-\\x{20F0}\\x{FE00}-\\x{FE0F}\\x{FE20}-\\x{FE2F}]', '')), 'ß', 'ss'), 'ς', 'σ'),
                '([\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Hangul}\\p{Thai}ー]+)', ' \\1 '),
              '[\\p{L}\\p{M}\\p{N}]+')))),
        arrayMap(text -> if(match(text, '^\\s*[\\[{]'),
            replaceRegexpAll(replaceRegexpAll(replaceRegexpAll(text,
              '"(?:role|type|id|tool_call_id|tool_use_id|call_id)"\\s*:\\s*"[^"\\\\]*"', ' '),
              '"[A-Za-z0-9_.-]{1,100}"\\s*:(?:\\s*(?:null|true|false)\\b)?', ' '),
              '\\\\(?:[\\\\nrtbf"/]|u[0-9a-fA-F]{4})', ' '),
            text), [prompt, response]))), ' ')
  COMMENT 'Words of prompt and response, in order' CODEC(LZ4) AFTER extra_words;
ALTER TABLE span_texts ADD COLUMN IF NOT EXISTS words String DEFAULT arrayStringConcat(arrayFlatten(arrayMap(
        text -> if(length(text) = lengthUTF8(text), tokens(lower(text)),
          arrayFlatten(arrayMap(
            word -> if(NOT match(word, '^[\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Hangul}\\p{Thai}ー]') OR lengthUTF8(word) < 2, [word],
              arrayMap(place -> substringUTF8(word, place, 2), range(1, lengthUTF8(word)))),
            extractAll(
              replaceRegexpAll(
                replaceAll(replaceAll(normalizeUTF8NFC(replaceRegexpAll(normalizeUTF8NFD(lowerUTF8(normalizeUTF8NFKC(text))), '[\\x{0300}-\\x{036F}\\x{0483}-\\x{0487}\\x{0591}-\\x{05BD}\\x{05BF}\\x{05C1}-\\x{05C2}\\x{05C4}-\\x{05C5}\\x{05C7}\\x{0610}-\\x{061A}\\x{064B}-\\x{065F}\\x{0670}\\x{1AB0}-\\x{1ACE}\\x{1DC0}-\\x{1DFF}\\x{20D0}-\\x{20F0}\\x{FE00}-\\x{FE0F}\\x{FE20}-\\x{FE2F}]', '')), 'ß', 'ss'), 'ς', 'σ'),
                '([\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Hangul}\\p{Thai}ー]+)', ' \\1 '),
              '[\\p{L}\\p{M}\\p{N}]+')))),
        arrayMap(text -> if(match(text, '^\\s*[\\[{]'),
            replaceRegexpAll(replaceRegexpAll(replaceRegexpAll(text,
              '"(?:role|type|id|tool_call_id|tool_use_id|call_id)"\\s*:\\s*"[^"\\\\]*"', ' '),
              '"[A-Za-z0-9_.-]{1,100}"\\s*:(?:\\s*(?:null|true|false)\\b)?', ' '),
              '\\\\(?:[\\\\nrtbf"/]|u[0-9a-fA-F]{4})', ' '),
            text), [prompt, response]))), ' ')
  COMMENT 'Words of prompt and response, in order' CODEC(ZSTD(1)) AFTER extra_words;
ALTER TABLE span_texts ADD INDEX IF NOT EXISTS ix_words words TYPE text(tokenizer = 'splitByNonAlpha');
ALTER TABLE cold_staging ADD COLUMN IF NOT EXISTS words String COMMENT 'Empty in older objects' CODEC(LZ4) AFTER extra_words;
