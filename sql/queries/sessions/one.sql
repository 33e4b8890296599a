-- Rows of the traces of one session or of one end user. Both rows of a pair hold the same values,
-- so a condition matches both or none.
org_id = {org_id:String}
/*if session_id*/AND session_id = {session_id:String}/*end*/
/*if user_id*/AND user_id = {user_id:String}/*end*/
