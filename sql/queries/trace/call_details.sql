-- The given spans of a trace with the parts of their attributes that a conversation shows.
SELECT span_id, log_seq, log_index, log_sub, name, model, outcome, toUnixTimestamp64Milli(ended_at) AS ended_ms, input_tokens, output_tokens, cost_usd,
  JSONExtractRaw(attributes, 'tool_calls') AS tool_calls,
  JSONExtractString(attributes, 'gen_ai.response.reasoning') AS reasoning,
  JSONExtract(attributes, 'gen_ai.response.finish_reasons', 'Array(String)') AS finish_reasons,
  firstNonDefault(JSONExtractString(attributes, 'gen_ai.tool.call.id'), JSONExtractString(attributes, 'ai.toolCall.id'), JSONExtractString(attributes, 'tool_call_id')) AS call_id,
  if(outcome = 'success', '', /*include trace/error_text.sql*/) AS message
FROM spans
WHERE org_id = {org_id:String} AND trace_id = {trace_id:String}
  AND started_at IN {times:Array(DateTime64(3, 'UTC'))}
  AND (log_seq, log_index, log_sub) IN arrayZip({seqs:Array(UInt64)}, {indexes:Array(UInt32)}, {subs:Array(UInt32)})
SETTINGS /*include settings/cached.sql*/
