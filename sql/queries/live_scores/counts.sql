-- Counts of live scores. Errors have no score and count in neither mean nor rate.
count() AS total, countIf(verdict = 'pass') AS passed, countIf(verdict = 'warn') AS warned, countIf(verdict = 'fail') AS failed,
  countIf(verdict = 'error') AS errors, if(count(score) = 0, NULL, sumKahan(score) / count(score)) AS mean_score
