-- Spans that started within the time of a series, of the traces that match its filters.
org_id = {org_id:String}
AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')
/*if filtered*/AND trace_key IN (
  SELECT trace_key FROM traces
  WHERE /*include traces/filters.sql*/
  GROUP BY trace_key
  HAVING sum(sign) > 0
)/*end*/
