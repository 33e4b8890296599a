-- The given traces that an eval has judged.
SELECT DISTINCT trace_id
FROM judge_scores
WHERE /*include judge_scores/one_eval.sql*/ AND trace_id IN (SELECT arrayJoin({trace_ids:Array(String)}))
