-- Live scores of every judge of an organization. A verdict `fail` is a breach: the score is below
-- threshold.warn, or below threshold.pass where no warn is set.
SELECT judge_id, /*include live_scores/counts.sql*/,
  if(failed = 0, NULL, toUnixTimestamp64Milli(maxIf(scored_at, verdict = 'fail'))) AS last_breach_ms
FROM judge_scores FINAL
WHERE org_id = {org_id:String} AND eval_id = '' AND scored_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
GROUP BY judge_id
ORDER BY judge_id
