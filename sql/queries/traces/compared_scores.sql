-- Scores that judges gave a trace, live or in evals: the newest score of the newest version of each
-- judge. A score is given after the trace started; the month before allows for clocks that differ.
SELECT s.judge_id AS judge_id, argMax(s.judge_name, (s.judge_version, s.scored_at)) AS judge_name,
  argMax(assumeNotNull(s.score), (s.judge_version, s.scored_at)) AS score
FROM judge_scores AS s
WHERE s.org_id = {org_id:String} AND s.trace_key = sipHash64({trace_id:String}) AND s.trace_id = {trace_id:String}
  AND s.scored_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') - INTERVAL 1 MONTH AND s.score IS NOT NULL
GROUP BY judge_id
ORDER BY judge_id
LIMIT 1000
