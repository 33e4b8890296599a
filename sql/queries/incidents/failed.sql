-- Failing spans of the given traces between two instants.
org_id IN {orgs:Array(String)}
AND started_at BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
AND trace_key IN {trace_keys:Array(UInt64)}
AND outcome != 'success'
