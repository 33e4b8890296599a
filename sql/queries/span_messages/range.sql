-- Rows of the given traces within a time range.
org_id = {org_id:String}
AND started_at BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
AND trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)}))) AND trace_id IN {trace_ids:Array(String)}
