-- The column whose values are counted; exactly one flag is set.
/*if by_session_id*/session_id/*end*//*if by_user_id*/user_id/*end*//*if by_tags*/arrayJoin(tags)/*end*/
