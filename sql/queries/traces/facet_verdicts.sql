-- Number of traces by judge and its newest verdict: the last one of the judge's newest version.
SELECT judge_id, any(judge_name) AS name, verdict AS value, sum(sign) AS traces
FROM traces
INNER JOIN (
  SELECT trace_key, judge_id, argMax(s.judge_name, (s.judge_version, s.scored_at)) AS judge_name, argMax(s.verdict, (s.judge_version, s.scored_at)) AS verdict
  FROM judge_scores AS s
  WHERE /*include traces/judged_within.sql*/
  GROUP BY trace_key, judge_id
) AS judged USING (trace_key)
WHERE /*include traces/filters.sql*/
GROUP BY judge_id, verdict
HAVING traces > 0
ORDER BY traces DESC, judge_id, verdict
LIMIT {rows:UInt32}
