-- Rows of one trace. Rows of pairs that are not merged yet appear side by side; the caller adds up
-- sign by version.
SELECT /*include traces/columns.sql*/, sampled
FROM traces
WHERE org_id = {org_id:String}
  AND anchor BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
  AND trace_key = sipHash64({trace_id:String}) AND trace_id = {trace_id:String}
ORDER BY version DESC
