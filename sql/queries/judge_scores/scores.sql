-- Scores of an eval, in the order of the key.
SELECT trace_id, judge_version, item_index, score, verdict, reason, scored_at
FROM judge_scores FINAL
WHERE /*include judge_scores/one_eval.sql*/
  /*if verdicts*/AND verdict IN {verdicts:Array(String)}/*end*/
ORDER BY org_id, judge_id, eval_id, /*if by_item*/item_index, /*end*/trace_id
