-- Rows of traces that belong to a session or an end user and match the filters. Both rows of a pair
-- hold the same values, so a condition matches both or none.
org_id = {org_id:String}
/*if by_session*/AND session_id != ''/*end*/
/*if by_user*/AND user_id != ''/*end*/
/*if session_id*/AND session_id = {session_id:String}/*end*/
/*if user_id*/AND user_id = {user_id:String}/*end*/
/*if agent_id*/AND agent_id = {agent_id:String}/*end*/
/*if since_ms*/AND anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
/*if until_ms*/AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
