-- Scores of the given traces, by name: the newest score of each name that people and applications
-- gave a trace as a whole or one of its spans, and the newest score of the newest version of each
-- judge. A judge scores after the trace started; the month before allows for clocks that differ.
SELECT trace_id, newest.4 AS source, name, newest.1 AS data_type, newest.2 AS number, newest.3 AS text, '' AS verdict
FROM (
  SELECT trace_id, name, argMax((toString(data_type), number, text, if(author_type = 'otel', 'otel', 'user')), created_at) AS newest
  FROM user_scores
  WHERE org_id = {org_id:String} AND trace_key IN {trace_keys:Array(UInt64)}
    AND started_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND started_at <= fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
    AND /*include user_scores/not_deleted.sql*/
  GROUP BY trace_id, name
)
ORDER BY trace_id, name
LIMIT {scores_max:UInt32} BY trace_id
UNION ALL
SELECT trace_id, 'judge', newest.1, 'numeric', newest.2, '', newest.3
FROM (
  SELECT trace_id, judge_id, argMax((toString(judge_name), score, toString(verdict)), (judge_version, scored_at)) AS newest
  FROM judge_scores
  WHERE org_id = {org_id:String} AND trace_key IN {trace_keys:Array(UInt64)}
    AND scored_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') - INTERVAL 1 MONTH
  GROUP BY trace_id, judge_id
)
ORDER BY trace_id, judge_id
LIMIT {scores_max:UInt32} BY trace_id
