-- Rows of the given spans that still count. Organizations, traces and spans are lists, not triples: a row
-- may match values that were not asked for together.
WITH (
  SELECT (min(first_at), max(last_at))
  FROM trace_lookup
  WHERE trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)})))
) AS times
SELECT
  org_id,
  trace_id,
  span_id,
  toUnixTimestamp64Milli(started_at) AS started_ms,
  partition,
  toString(log_seq) AS log_seq,
  log_index,
  log_sub
FROM spans
WHERE org_id IN {orgs:Array(String)} AND started_at >= times.1 AND started_at <= times.2
  AND trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)})))
  AND span_id IN {spans:Array(String)} AND bitAnd(flags, {duplicate:UInt16}) = 0 AND log_sub = 0
