-- Calls of a prompt, newest first, with the variables that they sent as JSON: empty where there are
-- none, or more than fit an answer.
SELECT trace_id, span_id, prompt_version AS version, model, outcome, toUnixTimestamp64Milli(started_at) AS started_ms,
  greatest(0, dateDiff('millisecond', started_at, ended_at)) AS duration_ms, toFloat64(cost_usd) AS cost,
  if(length(raw) <= {variable_bytes_max:UInt32}, raw, '') AS variables
FROM (
  SELECT trace_id, span_id, prompt_version, model, outcome, started_at, ended_at, cost_usd, log_seq, log_index, log_sub,
    JSONExtractRaw(attributes, 'prompt_variables') AS raw
  FROM spans
  WHERE /*include prompts/calls.sql*/ /*if version*/AND prompt_version = {version:String}/*end*/
  ORDER BY started_at DESC, log_seq DESC, log_index DESC, log_sub DESC
  LIMIT {rows:UInt32}
)
ORDER BY started_at DESC, log_seq DESC, log_index DESC, log_sub DESC
