-- Rows of the given traces, newest first, with which of several filters each matches. The ids are
-- in a subquery, because the engine uses no index for a computed array.
SELECT /*include traces/columns.sql*/, CAST([/*every filters with ,*/toUInt8(/*include traces/filters.sql*/)/*end*/], 'Array(UInt8)') AS matched
FROM traces
WHERE org_id = {org_id:String} AND anchor >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC')
  AND started_at BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
  AND trace_key IN (SELECT arrayJoin({trace_keys:Array(UInt64)}))
ORDER BY started_at DESC, trace_key DESC, version DESC
