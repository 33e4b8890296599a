-- Filters of traces. Both rows of a pair hold the same values, so a condition matches both or none.
-- started_at is never after anchor, so a lower bound applies to both, and anchor is in the key. The
-- keys of trace ids are in a subquery, because the engine uses no index for a computed array. A set of
-- many keys comes as base64 of 8 bytes each, in parts, since the engine takes 128 KiB of a parameter.
-- Masked rows have no user in the projection by user; `concat` keeps the engine from reading it for users to leave out.
org_id = {org_id:String}
/*if agent_id*/AND agent_id IN {agent_id:Array(String)}/*end*/
/*if outcome*/AND outcome IN {outcome:Array(String)}/*end*/
/*if min_duration_ms*/AND duration_ms >= {min_duration_ms:UInt64}/*end*/
/*if max_duration_ms*/AND duration_ms <= {max_duration_ms:UInt64}/*end*/
/*if since_ms*/AND anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
/*if until_ms*/AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
/*if tags*/AND hasAny(tags, {tags:Array(String)})/*end*/
/*if session_id*/AND session_id = {session_id:String}/*end*/
/*if user_id*/AND user_id = {user_id:String}/*end*/
/*if root_span_name*/AND root_span_name IN {root_span_name:Array(String)}/*end*/
/*if min_cost_usd*/AND cost_usd >= {min_cost_usd:Float64}/*end*/
/*if max_cost_usd*/AND cost_usd <= {max_cost_usd:Float64}/*end*/
/*if min_tokens*/AND input_tokens + output_tokens >= {min_tokens:UInt64}/*end*/
/*if max_tokens*/AND input_tokens + output_tokens <= {max_tokens:UInt64}/*end*/
/*if sampled*/AND sampled = {sampled:Bool}/*end*/
/*if trace_ids*/AND trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)}))) AND trace_id IN {trace_ids:Array(String)}/*end*/
/*if not_agent_id*/AND agent_id NOT IN {not_agent_id:Array(String)}/*end*/
/*if not_outcome*/AND outcome NOT IN {not_outcome:Array(String)}/*end*/
/*if not_tags*/AND NOT hasAny(tags, {not_tags:Array(String)})/*end*/
/*if not_session_id*/AND session_id NOT IN {not_session_id:Array(String)}/*end*/
/*if not_user_id*/AND concat(user_id, '') NOT IN {not_user_id:Array(String)}/*end*/
/*if not_root_span_name*/AND root_span_name NOT IN {not_root_span_name:Array(String)}/*end*/
/*if not_trace_ids*/AND trace_id NOT IN {not_trace_ids:Array(String)}/*end*/
/*if words*/AND trace_key IN (/*include traces/spans_worded.sql*/)/*end*/
/*if trace_keys*/AND trace_key IN {trace_keys:Array(UInt64)}/*end*/
/*if trace_set*/AND trace_key IN (SELECT arrayJoin(reinterpret(base64Decode(concat('', /*each trace_set with ,*/{trace_set_part:String}/*end*/)), 'Array(UInt64)')))/*end*/
/*include traces/filters_spans.sql*/
/*include traces/filters_scores.sql*/
