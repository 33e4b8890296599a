-- A text is in one of two tables. While the text mover runs, it may be in both; the view then takes
-- it from span_texts.
--
-- Only texts that have not been moved store their words. The words of the others are made when a query
-- asks for them: nearly those of the pipeline (pipeline/domain/text), as the engine can make them.
-- plain_text removes keys, roles, types and ids of JSON by their looks, and replaces escapes by spaces;
-- folded folds case, width and diacritics; words_of cuts Han, kana, Hangul and Thai into pairs.
CREATE OR REPLACE VIEW analyst_texts
(
  org_id LowCardinality(String) COMMENT 'Org that the span belongs to',
  trace_id String COMMENT 'Trace that the span belongs to',
  span_id String COMMENT 'Span that the texts are of',
  started_at DateTime64(3, 'UTC') COMMENT 'Start of the span; bound every query by org_id and started_at, which are the key',
  model LowCardinality(String) COMMENT 'Model, empty where none was called',
  outcome LowCardinality(String) COMMENT 'success, error or timeout',
  cost_usd Decimal(18, 12) COMMENT 'Cost of the span',
  prompt String COMMENT 'Conversation as JSON text of messages, or the tool''s input; gone after the org''s full_prompt_response_days',
  response String COMMENT 'Text of the answer, or the tool''s output; gone with the prompt',
  words String COMMENT 'Words of the plain text of prompt and response, in order and as search asks them: lower case, no diacritics, one space between words. Computed from the texts by each query that reads it'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
COMMENT 'One row a span that has a prompt or a response'
AS WITH
  text -> if(
    match(text, '^\\s*[\\[{]'),
    replaceRegexpAll(
      replaceRegexpAll(
        replaceRegexpAll(text, '"(?:role|type|id|tool_call_id|tool_use_id|call_id)"\\s*:\\s*"[^"\\\\]*"', ' '),
        '"[A-Za-z0-9_.-]{1,100}"\\s*:(?:\\s*(?:null|true|false)\\b)?', ' '
      ),
      '\\\\(?:[\\\\nrtbf"/]|u[0-9a-fA-F]{4})', ' '
    ),
    text
  ) AS plain_text,
  text -> replaceAll(
    replaceAll(
      normalizeUTF8NFC(replaceRegexpAll(
        normalizeUTF8NFD(lowerUTF8(normalizeUTF8NFKC(text))),
        '[\\x{0300}-\\x{036F}\\x{0483}-\\x{0487}\\x{0591}-\\x{05BD}\\x{05BF}\\x{05C1}-\\x{05C2}\\x{05C4}-\\x{05C5}\\x{05C7}\\x{0610}-\\x{061A}\\x{064B}-\\x{065F}\\x{0670}\\x{1AB0}-\\x{1ACE}\\x{1DC0}-\\x{1DFF}\\x{20D0}-\\x{20F0}\\x{FE00}-\\x{FE0F}\\x{FE20}-\\x{FE2F}]', ''
      )),
      'ß', 'ss'
    ),
    'ς', 'σ'
  ) AS folded,
  word -> if(
    NOT match(word, '^[\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Hangul}\\p{Thai}ー]') OR lengthUTF8(word) < 2,
    [word],
    arrayMap(place -> substringUTF8(word, place, 2), range(1, lengthUTF8(word)))
  ) AS pairs_of,
  text -> if(
    length(text) = lengthUTF8(text),
    tokens(lower(text)),
    arrayFlatten(arrayMap(
      word -> pairs_of(word),
      extractAll(
        replaceRegexpAll(folded(text), '([\\p{Han}\\p{Hiragana}\\p{Katakana}\\p{Hangul}\\p{Thai}ー]+)', ' \\1 '),
        '[\\p{L}\\p{M}\\p{N}]+'
      )
    ))
  ) AS words_of,
  (prompt, response) -> arrayStringConcat(arrayConcat(words_of(plain_text(prompt)), words_of(plain_text(response))), ' ') AS words_of_both
SELECT
  org_id, trace_id, span_id, started_at, model, outcome, cost_usd, prompt, response,
  if(stored_words = '', words_of_both(prompt, response), stored_words) AS words
FROM (
  SELECT org_id, trace_id, span_id, started_at, model, outcome, cost_usd, prompt, response, words AS stored_words
  FROM span_texts
  UNION ALL
  SELECT org_id, trace_id, span_id, started_at, model, outcome, cost_usd, prompt, response, words AS stored_words
  FROM span_texts_recent
  WHERE (partition, log_seq, log_index, log_sub) NOT IN (
    SELECT partition, log_seq, log_index, log_sub
    FROM span_texts
    WHERE log_seq >= (SELECT min(log_seq) FROM span_texts_recent)
  )
);
