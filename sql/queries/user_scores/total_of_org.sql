-- Number of scores of an organization across traces.
SELECT
  (SELECT count() FROM user_scores FINAL WHERE /*include user_scores/given.sql*/) +
  (SELECT count() FROM judge_scores FINAL WHERE /*include user_scores/judged.sql*/) AS total
