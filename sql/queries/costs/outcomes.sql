-- Costs and outcomes by department; a department that events do not name is looked up by the agent, so those come with theirs.
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
