-- Rows of the given traces of an organization within a time range.
org_id = {org_id:String}
AND started_at BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
AND trace_key IN (SELECT arrayJoin({trace_keys:Array(UInt64)})) AND trace_id IN (SELECT arrayJoin({trace_ids:Array(String)}))
