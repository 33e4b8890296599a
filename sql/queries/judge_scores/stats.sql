-- Totals of an eval. The median is exact: the middle score, or the mean of the middle two. The sum
-- is compensated, so that the mean does not depend on the order of the rows.
SELECT count() AS total, countIf(verdict = 'pass') AS passed, countIf(verdict = 'warn') AS warned, countIf(verdict = 'fail') AS failed,
  countIf(verdict = 'error') AS errors,
  if(count(score) = 0, NULL, sumKahan(score) / count(score)) AS mean_score,
  if(count(score) = 0, NULL, quantileExactInclusive(0.5)(score)) AS p50_score
FROM judge_scores FINAL
WHERE /*include judge_scores/one_eval.sql*/
