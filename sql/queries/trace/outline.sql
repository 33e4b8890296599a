-- Spans of a trace in the order of their start, as columns in one row. The columns are narrow:
-- neither texts nor attributes are read.
SELECT count() AS total, toUnixTimestamp64Milli(max(received_at)) AS received_ms, countIf(is_unflagged) AS unflagged,
  groupArray({rows:UInt32})(span_id) AS span_id, groupArray({rows:UInt32})(parent_span_id) AS parent_span_id,
  groupArray({rows:UInt32})(name) AS name, groupArray({rows:UInt32})(kind) AS kind, groupArray({rows:UInt32})(model) AS model,
  groupArray({rows:UInt32})(outcome) AS outcome,
  groupArray({rows:UInt32})(toFloat64(toUnixTimestamp64Milli(started_at))) AS started_ms,
  groupArray({rows:UInt32})(toFloat64(toUnixTimestamp64Milli(ended_at))) AS ended_ms,
  groupArray({rows:UInt32})(input_tokens) AS input_tokens, groupArray({rows:UInt32})(output_tokens) AS output_tokens,
  groupArray({rows:UInt32})(cost_usd) AS cost_usd, groupArray({rows:UInt32})(first_token_ms) AS first_token_ms, groupArray({rows:UInt32})(flags) AS flags
FROM (
  SELECT span_id, parent_span_id, name, kind, model, outcome, started_at, ended_at, received_at, input_tokens, output_tokens, cost_usd, first_token_ms, flags, flags = 0 AS is_unflagged
  FROM spans
  WHERE /*include traces/one.sql*/
  ORDER BY started_at, log_seq, log_index, log_sub
)
SETTINGS /*include settings/cached.sql*/
