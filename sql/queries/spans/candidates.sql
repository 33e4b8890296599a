-- Documents within the filters of a search. Agent and tags are those of the trace.
org_id = {org_id:String} AND doc > 0
/*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
/*if until_ms*/AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
/*if model*/AND model = {model:String}/*end*/
/*if outcome*/AND outcome = {outcome:String}/*end*/
/*if min_cost_usd*/AND cost_usd >= {min_cost_usd:Float64}/*end*/
/*if max_cost_usd*/AND cost_usd <= {max_cost_usd:Float64}/*end*/
/*if of_traces*/AND trace_key IN (
  SELECT trace_key FROM traces
  WHERE org_id = {org_id:String}
    /*if agent_id*/AND agent_id = {agent_id:String}/*end*/
    /*if tags*/AND hasAny(tags, {tags:Array(String)})/*end*/
  GROUP BY trace_key, version
  HAVING sum(sign) > 0
)/*end*/
