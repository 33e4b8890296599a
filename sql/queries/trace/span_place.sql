-- Place of the texts of one span, found by its start and its position in the ingest log.
org_id = {org_id:String} AND trace_id = {trace_id:String} AND started_at = fromUnixTimestamp64Milli({started_ms:Int64}, 'UTC')
AND log_seq = {log_seq:UInt64} AND log_index = {log_index:UInt32} AND log_sub = {log_sub:UInt32}
