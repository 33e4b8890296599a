-- Number of the live scores of a judge.
SELECT count() AS total
FROM judge_scores FINAL
WHERE /*include live_scores/of_judge.sql*/
