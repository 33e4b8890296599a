-- Costs and outcomes by department. The caller looks up the department of an agent whose events do
-- not name one, so those rows keep their agent.
SELECT
  department,
  if(department = '', agent_id, '') AS agent,
  toString(sum(u.cost_usd)) AS cost_usd,
  sumMap(outcome_names, outcome_values) AS sums,
  sums.1 AS names,
  arrayMap(amount -> toString(amount), sums.2) AS amounts,
  groupUniqArrayArray(outcome_names) AS all_names
FROM usage_events AS u
WHERE org_id = {org_id:String} AND day >= toDate({from:UInt16}) AND day < toDate({until:UInt16})
GROUP BY department, agent
