-- Scores of these ids that have landed, with the time at which they were given.
SELECT DISTINCT score_id, toUnixTimestamp64Milli(created_at) AS created_ms
FROM user_scores
WHERE org_id IN {org_ids:Array(String)} AND trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)})))
  AND score_id IN {score_ids:Array(String)}
