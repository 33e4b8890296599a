-- A score of a person or an application, and its deletion if it has one. LIMIT BY leaves one row of a
-- score that landed twice; FINAL would have to read the keys of whole parts.
SELECT trace_id, span_id, name, author_type, author_id, toUnixTimestamp64Milli(started_at) AS started_ms, toUnixTimestamp64Milli(created_at) AS created_ms
FROM user_scores
WHERE org_id = {org_id:String} AND score_id = {score_id:String}
ORDER BY name
LIMIT 1 BY name
LIMIT 2
