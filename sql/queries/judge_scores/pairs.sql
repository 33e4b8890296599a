-- Scores of two evals of a judge side by side, by place in the dataset or by trace. An item that
-- was not judged in one of them, or ended with an error, has no delta.
SELECT item_index,
  maxIf(trace_id, eval_id = {baseline:String}) AS baseline_trace_id, maxIf(trace_id, eval_id = {candidate:String}) AS candidate_trace_id,
  maxIf(score, eval_id = {baseline:String}) AS baseline_score, maxIf(score, eval_id = {candidate:String}) AS candidate_score,
  maxIf(verdict, eval_id = {baseline:String}) AS baseline_verdict, maxIf(verdict, eval_id = {candidate:String}) AS candidate_verdict,
  maxIf(reason, eval_id = {baseline:String}) AS baseline_reason, maxIf(reason, eval_id = {candidate:String}) AS candidate_reason,
  candidate_score - baseline_score AS delta,
  multiIf(isNull(delta), 'incomparable', delta > 0, 'improved', delta < 0, 'regressed', 'unchanged') AS change
FROM judge_scores FINAL
WHERE org_id = {org_id:String} AND judge_id = {judge_id:String} AND eval_id IN ({baseline:String}, {candidate:String})
GROUP BY item_index/*if by_trace*/, trace_id/*end*/
