-- Anomalies of an organization, newest day first. At one a day the bound is 27 years.
SELECT
  anomaly_id,
  toString(day) AS date,
  detected_at,
  z,
  toString(expected_usd) AS expected,
  toString(actual_usd) AS actual,
  model,
  agent_id
FROM anomalies FINAL
WHERE org_id = {org_id:String}
ORDER BY day DESC
LIMIT 10000
