-- Newest score of each rule for each given trace. Live scores of LLM judges have no log position.
SELECT org_id, trace_id, judge_id, judge_version, judge_name, score, verdict, reason
FROM judge_scores
WHERE /*include live_judging/traces.sql*/ AND eval_id = '' AND log_seq > 0
ORDER BY scored_at DESC
LIMIT 1 BY org_id, trace_id, judge_id
