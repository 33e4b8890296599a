-- Filters of GET /v1/traces. Both rows of a pair hold the same values, so a condition matches both
-- or none. started_at is never after anchor, so a lower bound applies to both, and anchor is in the
-- key.
org_id = {org_id:String}
/*if agent_id*/AND agent_id = {agent_id:String}/*end*/
/*if outcome*/AND outcome = {outcome:String}/*end*/
/*if min_duration_ms*/AND duration_ms >= {min_duration_ms:UInt64}/*end*/
/*if max_duration_ms*/AND duration_ms <= {max_duration_ms:UInt64}/*end*/
/*if since_ms*/AND anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
/*if until_ms*/AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
/*if tags*/AND hasAny(tags, {tags:Array(String)})/*end*/
/*if session_id*/AND session_id = {session_id:String}/*end*/
/*if user_id*/AND user_id = {user_id:String}/*end*/
/*if words*/AND trace_key IN (
  SELECT trace_key FROM span_texts
  WHERE org_id = {org_id:String}
    /*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
    AND hasAllTokens(concat(prompt, '\n', response, ' ', extra_words), {words:Array(String)})
)/*end*/
