-- A text is in one of two tables. While the text mover runs, it may be in both; the view then takes
-- it from span_texts.
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
  words String COMMENT 'Words of the plain text of prompt and response, in order and as search asks them: lower case, no diacritics, one space between words'
)
DEFINER = CURRENT_USER SQL SECURITY DEFINER
COMMENT 'One row a span that has a prompt or a response'
AS SELECT org_id, trace_id, span_id, started_at, model, outcome, cost_usd, prompt, response, words
FROM span_texts
UNION ALL
SELECT org_id, trace_id, span_id, started_at, model, outcome, cost_usd, prompt, response, words
FROM span_texts_recent
WHERE (partition, log_seq, log_index, log_sub) NOT IN (
  SELECT partition, log_seq, log_index, log_sub
  FROM span_texts
  WHERE log_seq >= (SELECT min(log_seq) FROM span_texts_recent)
);
