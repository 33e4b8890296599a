-- Spans that count a model call in place of others, received since a time.
SELECT org_id, trace_id, span_id, JSONExtract(attributes, 'replaces', 'Array(String)') AS replaces, toUnixTimestamp64Milli(received_at) AS received_ms
FROM spans
WHERE received_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND bitAnd(flags, {replaces:UInt16}) != 0
ORDER BY received_at
LIMIT {rows:UInt32}
