-- Costs of an organization's days by one or two dimensions, grouped like the projection p_day, so
-- that the engine reads days, not the rows of each landing. The caller looks up the realm or
-- department of an agent whose events do not name one, so those rows keep their agent.
SELECT
  day,
  /*if first_model*/model/*end*//*if first_agent_id*/agent_id/*end*//*if first_realm*/realm/*end*//*if first_department*/department/*end*/ AS first,
  /*if second_model*/model/*end*//*if second_agent_id*/agent_id/*end*//*if second_realm*/realm/*end*//*if second_department*/department/*end*//*if second_none*/''/*end*/ AS second,
  if(false/*if by_realm*/ OR realm = ''/*end*//*if by_department*/ OR department = ''/*end*/, agent_id, '') AS agent,
  sum(cost_usd) AS cost,
  sum(input_tokens) + sum(output_tokens) AS used
FROM usage_events
WHERE org_id = {org_id:String} AND day >= toDate({from:UInt16}) AND day < toDate({until:UInt16})
GROUP BY day, first, second, agent
