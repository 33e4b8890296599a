-- One row if the trace has a span with this id.
SELECT 1 AS found
FROM spans
WHERE org_id = {org_id:String} AND started_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND started_at <= fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
  AND trace_id = {trace_id:String} AND span_id = {span_id:String}
LIMIT 1
