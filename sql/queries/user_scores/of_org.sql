-- Scores of an organization across traces, newest first: those from people and applications, and
-- those from judges.
SELECT source, score_id, trace_id, span_id, name, data_type, number, text, comment, author_type, author_id, judge_id, judge_version, eval_id, verdict,
  created_ms, sipHash64(source, score_id, trace_id, judge_id, judge_version, eval_id) AS place
FROM (
  SELECT if(author_type = 'otel', 'otel', 'user') AS source, score_id, trace_id, span_id, name, toString(data_type) AS data_type, number, text, comment, author_type, author_id,
    '' AS judge_id, toUInt32(0) AS judge_version, '' AS eval_id, '' AS verdict, toUnixTimestamp64Milli(created_at) AS created_ms
  FROM user_scores FINAL
  WHERE /*include user_scores/given.sql*/
  UNION ALL
  SELECT 'judge', '', trace_id, '', judge_name, 'numeric', score, '', reason, 'judge', judge_id, judge_id, judge_version, eval_id, toString(verdict),
    toUnixTimestamp64Milli(scored_at)
  FROM judge_scores FINAL
  WHERE /*include user_scores/judged.sql*/
)
/*if after_ms*/WHERE (created_ms, place) < ({after_ms:Int64}, {after_place:UInt64})/*end*/
ORDER BY created_ms DESC, place DESC
LIMIT {rows:UInt32} OFFSET {skip:UInt64}
