-- Live scores of one judge by day of the score and version of the judge.
SELECT toString(toDate(scored_at, 'UTC')) AS day, judge_version, /*include live_scores/counts.sql*/
FROM judge_scores FINAL
WHERE /*include live_scores/of_judge.sql*/
GROUP BY day, judge_version
ORDER BY day, judge_version
