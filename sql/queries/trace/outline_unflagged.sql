-- Flags and times to the first token of the spans of a trace that landed before these were columns,
-- from their other columns and their attributes.
SELECT span_id, toUnixTimestamp64Milli(started_at) AS started_ms,
  toUInt32(least(86400000, greatest(0, firstNonDefault(
    JSONExtractFloat(attributes, 'time_to_first_token_ms'), JSONExtractFloat(attributes, 'ai.response.msToFirstChunk'), JSONExtractFloat(attributes, 'ttft_ms'))))) AS first_token,
  {recorded:UInt16}
  + if(sampled AND (kind = 'llm' OR position(attributes, '"$ref"') > 0 OR (log_seq, log_index, log_sub) GLOBAL IN (
      SELECT log_seq, log_index, log_sub FROM span_texts WHERE /*include traces/one.sql*/
      UNION ALL
      SELECT log_seq, log_index, log_sub FROM span_texts_recent WHERE /*include traces/one.sql*/)), {has_texts:UInt16}, 0)
  + if(NOT sampled AND kind = 'llm', {texts_sampled_out:UInt16}, 0)
  + if(JSONExtractBool(attributes, 'tokens_estimated'), {usage_estimated:UInt16}, 0)
  + if(price_source = 'missing' OR JSONExtractBool(attributes, 'price_missing'), {price_missing:UInt16}, 0)
  + if(JSONExtractBool(attributes, 'judge_call'), {judge_call:UInt16}, 0)
  + if(JSONType(attributes, 'replay_of') = 'String', {replay:UInt16}, 0)
  + if(JSONType(attributes, 'dataset_run') = 'String', {dataset_run:UInt16}, 0)
  + if(JSONExtractBool(attributes, 'prompt_truncated'), {prompt_truncated:UInt16}, 0)
  + if(JSONExtractBool(attributes, 'times_estimated'), {times_estimated:UInt16}, 0) AS bits
FROM spans
WHERE /*include traces/one.sql*/ AND flags = 0
ORDER BY started_at, log_seq, log_index, log_sub
LIMIT {rows:UInt32}
