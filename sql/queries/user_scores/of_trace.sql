-- All scores of a trace, newest first: those from people and applications, and those from judges.
SELECT source, score_id, span_id, name, data_type, number, text, comment, author_type, author_id, judge_id, judge_version, eval_id, verdict, created_ms
FROM (
  SELECT if(author_type = 'otel', 'otel', 'user') AS source, score_id, span_id, name, toString(data_type) AS data_type, number, text, comment, author_type, author_id,
    '' AS judge_id, toUInt32(0) AS judge_version, '' AS eval_id, '' AS verdict, toUnixTimestamp64Milli(created_at) AS created_ms
  FROM user_scores FINAL
  WHERE org_id = {org_id:String} AND trace_key = sipHash64({trace_id:String}) AND trace_id = {trace_id:String}
    AND /*include user_scores/not_deleted.sql*/
  UNION ALL
  SELECT 'judge', '', '', judge_name, 'numeric', score, '', reason, 'judge', judge_id, judge_id, judge_version, eval_id, toString(verdict),
    toUnixTimestamp64Milli(scored_at)
  FROM judge_scores FINAL
  WHERE org_id = {org_id:String} AND trace_key = sipHash64({trace_id:String}) AND trace_id = {trace_id:String}
)
ORDER BY created_ms DESC, name, score_id, judge_id, judge_version, eval_id
LIMIT {rows:UInt32}
