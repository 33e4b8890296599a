-- Scores that were given in one annotation queue: their ids begin with that of the queue. LIMIT BY
-- leaves one row of a score that landed twice.
SELECT score_id, trace_id, name, toString(user_scores.data_type) AS data_type, number, text, /*if comments*/comment/*end*//*if bare*/''/*end*/ AS said
FROM user_scores
WHERE org_id = {org_id:String} AND /*include user_scores/not_deleted.sql*/
  AND started_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND started_at <= fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
  AND startsWith(score_id, {prefix:String})
  /*if trace_ids*/AND trace_key IN arrayMap(id -> sipHash64(id), {trace_ids:Array(String)}) AND trace_id IN {trace_ids:Array(String)}/*end*/
ORDER BY score_id
LIMIT 1 BY score_id
LIMIT {rows:UInt32}
