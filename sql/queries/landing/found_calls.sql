-- Model calls of the given traces in these partitions that count, in log order. trace_lookup holds the times
-- of the traces: without them the statement reads all spans of the organizations. An organization and
-- a trace that were not asked for together may match too.
WITH (
  SELECT (min(first_at), max(last_at))
  FROM trace_lookup
  WHERE trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)})))
) AS times
SELECT
  s.org_id AS org_id,
  s.trace_id AS trace_id,
  s.span_id AS span_id,
  s.source_format AS source_format,
  s.agent_id AS agent_id,
  s.model AS model,
  s.department AS department,
  s.realm AS realm,
  toUnixTimestamp64Milli(s.received_at) AS received_ms,
  toInt32(toDate(s.started_at)) AS day,
  s.input_tokens AS input_tokens,
  s.output_tokens AS output_tokens,
  toString(s.cost_usd) AS cost_usd,
  s.log_seq AS log_seq,
  arrayFilter(kv -> has({names:Array(String)}, kv.1), JSONExtractKeysAndValuesRaw(s.attributes)) AS named
FROM spans AS s
WHERE s.org_id IN {orgs:Array(String)} AND s.started_at >= times.1 AND s.started_at <= times.2
  AND s.trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)})))
  AND s.partition IN {partitions:Array(UInt16)} AND s.log_seq < {before:UInt64} AND s.log_sub = 0 AND s.kind = 'llm'
ORDER BY s.log_seq, s.log_index
LIMIT {rows:UInt32}
