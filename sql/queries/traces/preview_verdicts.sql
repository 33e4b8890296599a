-- Newest score of each judge on several traces: the last one of the judge's newest version.
SELECT trace_id, judge_id, argMax(s.judge_name, (s.judge_version, s.scored_at)) AS name,
  argMax(s.verdict, (s.judge_version, s.scored_at)) AS verdict, argMax((s.score, 0), (s.judge_version, s.scored_at)).1 AS score
FROM judge_scores AS s
WHERE s.org_id = {org_id:String} AND s.scored_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') - INTERVAL 1 MONTH
  AND s.trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)}))) AND s.trace_id IN {trace_ids:Array(String)}
GROUP BY trace_id, judge_id
ORDER BY trace_id, judge_id
LIMIT 1000
