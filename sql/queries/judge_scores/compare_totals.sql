-- Totals of a comparison.
SELECT count() AS total, countIf(delta > 0) AS improved, countIf(delta < 0) AS regressed, countIf(delta = 0) AS unchanged,
  countIf(isNull(delta)) AS incomparable
FROM (/*include judge_scores/pairs.sql*/)
