-- Rows of one trace, within the bounds from trace_lookup. The bloom filter on trace_key helps when
-- the trace lasted long.
org_id = {org_id:String}
AND started_at BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
AND trace_key = sipHash64({trace_id:String}) AND trace_id = {trace_id:String}
