-- Scores of the calls of a prompt by version and name, and of all versions together. The score of a
-- trace counts for every version that the trace called; the score of a span counts for the version
-- of that call. Of several scores the newest counts: of each name on a trace or a span, and of each
-- judge on a trace. A judge scores after the trace started; the month before allows for clocks that
-- differ, and the day before for calls that start later than their trace.
WITH calls AS (
  SELECT trace_key, span_id, arrayJoin([(true, ''), (false, toString(prompt_version))]) AS grp
  FROM spans
  WHERE /*include prompts/calls.sql*/
), places AS (
  SELECT DISTINCT trace_key, '' AS scored_span, grp FROM calls
  UNION ALL
  SELECT DISTINCT trace_key, span_id AS scored_span, grp FROM calls WHERE span_id != ''
), scores AS (
  SELECT trace_key, span_id AS scored_span, if(author_type = 'otel', 'otel', 'user') AS source, '' AS judge_id, toString(name) AS score_name,
    argMax((number, '', toString(name)), (created_at, score_id)) AS newest
  FROM user_scores
  WHERE org_id = {org_id:String} AND /*include user_scores/not_deleted.sql*/ AND trace_key IN (SELECT trace_key FROM calls)
    AND started_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') - INTERVAL 1 DAY AND started_at <= fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
  GROUP BY trace_key, scored_span, source, score_name
  UNION ALL
  SELECT trace_key, '' AS scored_span, 'judge' AS source, toString(judge_id) AS judge_id, '' AS score_name,
    argMax((score, toString(verdict), toString(judge_name)), (judge_version, scored_at)) AS newest
  FROM judge_scores
  WHERE org_id = {org_id:String} AND trace_key IN (SELECT trace_key FROM calls)
    AND scored_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') - INTERVAL 1 MONTH
  GROUP BY trace_key, judge_id
)
SELECT grp.1 AS is_total, grp.2 AS version, source, judge_id, max(newest.3) AS name, count() AS scored,
  if(count(newest.1) = 0, NULL, sumKahan(newest.1) / count(newest.1)) AS mean,
  countIf(newest.2 = 'pass') AS passed, countIf(newest.2 = 'warn') AS warned, countIf(newest.2 = 'fail') AS failed
FROM scores
INNER JOIN places USING (trace_key, scored_span)
GROUP BY is_total, version, source, judge_id, score_name
ORDER BY scored DESC, source, judge_id, name
LIMIT {scores_max:UInt32} BY is_total, version
LIMIT {rows:UInt32}
