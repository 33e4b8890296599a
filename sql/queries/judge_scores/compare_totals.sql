-- Totals of a comparison, and the mean and the spread of the differences. `total` counts the items
-- that the filters keep, the other columns all items.
SELECT countIf(/*include judge_scores/compared.sql*/) AS total,
  countIf(change = 'improved') AS improved, countIf(change = 'regressed') AS regressed, countIf(change = 'unchanged') AS unchanged,
  countIf(change = 'incomparable') AS incomparable,
  if(count(delta) = 0, NULL, sumKahan(delta) / count(delta)) AS mean_delta,
  if(count(delta) < 2, NULL, stddevSampStable(delta)) AS deviation
FROM (/*include judge_scores/pairs.sql*/)
