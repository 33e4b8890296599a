-- Number of sessions of one end user.
SELECT uniqExact(session) AS sessions
FROM (
  SELECT any(session_id) AS session
  FROM traces
  WHERE /*include sessions/one.sql*/
  GROUP BY trace_key, version
  HAVING sum(sign) > 0 AND session != ''
)
