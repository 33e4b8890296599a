-- Number of scores of a trace.
SELECT
  (SELECT count() FROM user_scores FINAL WHERE org_id = {org_id:String} AND trace_key = sipHash64({trace_id:String}) AND trace_id = {trace_id:String}) AS of_users,
  (SELECT count() FROM judge_scores FINAL WHERE org_id = {org_id:String} AND trace_key = sipHash64({trace_id:String}) AND trace_id = {trace_id:String}) AS of_judges
