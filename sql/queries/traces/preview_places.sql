-- Texts of spans at the given places.
org_id = {org_id:String} AND started_at IN {times:Array(DateTime64(3, 'UTC'))}
AND (log_seq, log_index, log_sub) IN arrayZip({seqs:Array(UInt64)}, {indexes:Array(UInt32)}, {subs:Array(UInt32)})
