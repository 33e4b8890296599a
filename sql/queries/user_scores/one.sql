-- A score of a person or an application, and its deletion if it has one.
SELECT trace_id, span_id, name, author_type, author_id, toUnixTimestamp64Milli(started_at) AS started_ms, toUnixTimestamp64Milli(created_at) AS created_ms
FROM user_scores FINAL
WHERE org_id = {org_id:String} AND score_id = {score_id:String}
ORDER BY name
LIMIT 2
