-- Filters of traces by their scores. A judge's newest score of a trace is the last one of its newest
-- version, as in comparisons. A trace may turn out to have started earlier than it had when it was
-- scored, so only lower bounds of time apply; the month before allows for clocks that differ.
/*if judged*/AND trace_key IN (
  SELECT trace_key FROM judge_scores
  WHERE /*include traces/judged_within.sql*/ /*if judge_id*/AND judge_id IN {judge_id:Array(String)}/*end*/
  GROUP BY trace_key, judge_id
  /*if verdict*/HAVING argMax(verdict, (judge_version, scored_at)) IN {verdict:Array(String)}/*end*/
)/*end*/
/*if not_judge_id*/AND trace_key NOT IN (
  SELECT trace_key FROM judge_scores WHERE /*include traces/judged_within.sql*/ AND judge_id IN {not_judge_id:Array(String)}
)/*end*/
/*if not_verdict*/AND trace_key NOT IN (
  SELECT trace_key FROM judge_scores
  WHERE /*include traces/judged_within.sql*/ /*if judge_id*/AND judge_id IN {judge_id:Array(String)}/*end*/
  GROUP BY trace_key, judge_id
  HAVING argMax(verdict, (judge_version, scored_at)) IN {not_verdict:Array(String)}
)/*end*/
/*if scored*/AND trace_key GLOBAL IN (
  SELECT trace_key FROM judge_scores WHERE /*include traces/judged_within.sql*/
  UNION ALL SELECT trace_key FROM user_scores WHERE /*include traces/scored_within.sql*/
)/*end*/
/*if unscored*/AND trace_key GLOBAL NOT IN (
  SELECT trace_key FROM judge_scores WHERE /*include traces/judged_within.sql*/
  UNION ALL SELECT trace_key FROM user_scores WHERE /*include traces/scored_within.sql*/
)/*end*/
/*each scores*/AND trace_key IN (
  SELECT trace_key FROM user_scores
  WHERE /*include traces/scored_within.sql*/ AND name = {scores_name:String} AND multiIf(
    {scores_op:String} = 'eq', if(data_type = 'categorical', text = {scores_text:String}, number = {scores_number:Nullable(Float64)}),
    {scores_op:String} = 'ne', if(data_type = 'categorical', text != {scores_text:String}, number != {scores_number:Nullable(Float64)}),
    {scores_op:String} = 'gt', number > {scores_number:Nullable(Float64)},
    {scores_op:String} = 'gte', number >= {scores_number:Nullable(Float64)},
    {scores_op:String} = 'lt', number < {scores_number:Nullable(Float64)},
    number <= {scores_number:Nullable(Float64)})
)/*end*/
/*each not_scores*/AND trace_key NOT IN (
  SELECT trace_key FROM user_scores
  WHERE /*include traces/scored_within.sql*/ AND name = {not_scores_name:String} AND multiIf(
    {not_scores_op:String} = 'eq', if(data_type = 'categorical', text = {not_scores_text:String}, number = {not_scores_number:Nullable(Float64)}),
    {not_scores_op:String} = 'ne', if(data_type = 'categorical', text != {not_scores_text:String}, number != {not_scores_number:Nullable(Float64)}),
    {not_scores_op:String} = 'gt', number > {not_scores_number:Nullable(Float64)},
    {not_scores_op:String} = 'gte', number >= {not_scores_number:Nullable(Float64)},
    {not_scores_op:String} = 'lt', number < {not_scores_number:Nullable(Float64)},
    number <= {not_scores_number:Nullable(Float64)})
)/*end*/
