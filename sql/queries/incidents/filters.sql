-- Filters of GET /v1/incidents.
true
/*if status*/AND status = {status:String}/*end*/
/*if min_traces*/AND trace_count >= {min_traces:UInt64}/*end*/
/*if max_traces*/AND trace_count <= {max_traces:UInt64}/*end*/
/*if agent_id*/AND agent_id = {agent_id:String}/*end*/
/*if cluster_id*/AND cluster_id = {cluster_id:String}/*end*/
/*if since_ms*/AND last_trace_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
/*if until_ms*/AND first_trace_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
