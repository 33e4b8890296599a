-- The value by which a series is split; exactly one flag is set.
/*if by_none*/''/*end*//*if by_outcome*/outcome/*end*//*if by_agent_id*/agent_id/*end*//*if by_root_span_name*/root_span_name/*end*//*if by_session_id*/session_id/*end*//*if by_user_id*/user_id/*end*//*if by_model*/model/*end*/
