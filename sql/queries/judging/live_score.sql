-- Newest score that a version of a judge gave a live trace.
SELECT score
FROM judge_scores
WHERE org_id = {org_id:String} AND judge_id = {judge_id:String} AND eval_id = '' AND trace_id = {trace_id:String} AND item_index = 0
  AND judge_version = {judge_version:UInt32}
ORDER BY scored_at DESC
LIMIT 1
