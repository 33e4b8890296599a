-- Costs of an organization's days by day, by model, and by one further dimension, all from one
-- read, so that they add up. The inner query is grouped like the projection p_day, so that it reads
-- days, not the rows of each landing. The caller looks up the realm or department of an agent whose
-- events do not name one, so those rows keep their agent.
SELECT
  multiIf(grouping(day) = 0, 'day', grouping(model) = 0, 'model', 'group') AS part,
  day,
  model,
  name,
  agent,
  toString(sum(cost)) AS cost_usd,
  sum(used) AS tokens
FROM (
  SELECT
    day,
    model,
    /*if by_agent_id*/agent_id/*end*//*if by_realm*/realm/*end*//*if by_department*/department/*end*//*if by_model*/''/*end*/ AS name,
    /*if by_realm*/if(realm = '', agent_id, '')/*end*//*if by_department*/if(department = '', agent_id, '')/*end*//*if by_agent_id*/''/*end*//*if by_model*/''/*end*/ AS agent,
    sum(cost_usd) AS cost,
    sum(input_tokens) + sum(output_tokens) AS used
  FROM usage_events
  WHERE org_id = {org_id:String} AND day >= toDate({from:UInt16}) AND day < toDate({until:UInt16})
  GROUP BY day, model, name, agent
)
GROUP BY GROUPING SETS ((day), (model), (name, agent))
ORDER BY sum(cost) DESC, sum(used) DESC
LIMIT {groups_max:UInt32} BY part
SETTINGS /*include settings/cached.sql*/
