-- Page of the live scores of a judge, newest first.
SELECT trace_id, agent_id, judge_version, score, verdict, reason, toUnixTimestamp64Milli(scored_at) AS scored_ms
FROM judge_scores FINAL
WHERE /*include live_scores/of_judge.sql*/
  /*if after_ms*/AND (scored_at, trace_id, judge_version) < (fromUnixTimestamp64Milli({after_ms:Int64}, 'UTC'), {after_trace:String}, {after_version:UInt32})/*end*/
ORDER BY scored_at DESC, trace_id DESC, judge_version DESC
LIMIT {skip:UInt64}, {rows:UInt32}
