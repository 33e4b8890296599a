-- Page of the priced spans of an organization, in the order of their position after a given one. It
-- returns only those attributes that say what was counted.
SELECT
  toUnixTimestamp64Milli(started_at) AS started_ms,
  toUnixTimestamp64Milli(received_at) AS received_ms,
  s.trace_id AS trace_id,
  s.source_format AS source_format,
  s.model AS model,
  s.agent_id AS agent_id,
  s.department AS department,
  s.realm AS realm,
  s.input_tokens AS input_tokens,
  s.output_tokens AS output_tokens,
  s.cached_input_tokens AS cached_input_tokens,
  toString(s.cost_usd) AS cost_usd,
  s.price_source AS price_source,
  s.price_input_usd_per_mtok AS price_input_usd_per_mtok,
  s.price_output_usd_per_mtok AS price_output_usd_per_mtok,
  s.price_cached_input_usd_per_mtok AS price_cached_input_usd_per_mtok,
  -- Retention empties the attributes of old spans, including those that say what was counted.
  toBool(s.sampled AND s.attributes != '{}') AS sampled,
  arrayFilter(kv -> has({names:Array(String)}, kv.1) OR startsWith(kv.1, {prefix:String}), JSONExtractKeysAndValuesRaw(s.attributes)) AS counting,
  s.partition AS partition,
  s.log_seq AS log_seq,
  s.log_index AS log_index,
  s.log_sub AS log_sub
FROM spans AS s
WHERE org_id = {org_id:String}
  AND started_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC')
  AND started_at < fromUnixTimestamp64Milli({until:Int64}, 'UTC')
  AND price_source NOT IN ('', 'given')
  /*if model*/AND lowerUTF8(s.model) = lowerUTF8({model:String})/*end*/
  AND (started_at, partition, log_seq, log_index, log_sub) > (fromUnixTimestamp64Milli({from:Int64}, 'UTC'), {partition:Int32}, {log_seq:UInt64}, {log_index:UInt32}, {log_sub:UInt32})
ORDER BY s.started_at, s.partition, s.log_seq, s.log_index, s.log_sub
LIMIT {rows:UInt32}
