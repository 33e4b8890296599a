-- Number of traces by name and value of the scores of people and applications. A trace with several
-- scores of one name counts once for each different value.
SELECT score_name AS name, score_value AS value, sum(sign) AS traces
FROM traces
INNER JOIN (
  SELECT DISTINCT trace_key, s.name AS score_name,
    multiIf(s.data_type = 'categorical', s.text, s.data_type = 'boolean', if(s.number = 1, 'true', 'false'), toString(assumeNotNull(s.number))) AS score_value
  FROM user_scores AS s
  WHERE /*include traces/scored_within.sql*/
) AS scored USING (trace_key)
WHERE /*include traces/filters.sql*/
GROUP BY name, value
HAVING traces > 0
ORDER BY traces DESC, name, value
LIMIT {rows:UInt32}
