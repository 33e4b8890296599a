-- Traces of an org by session or by end user: sums over both rows of each pair. The row that is taken back starts no earlier and ends no
-- later than the one in its place, so the bounds of both are those of the newer.
SELECT /*if by_session*/session_id/*end*//*if by_user*/user_id/*end*/ AS id, sum(toInt64(sign)) AS traces, sum(toInt64(sign) * spans) AS spans,
  sum(toInt64(sign) * (outcome != 'success')) AS failed_traces,
  sum(toInt64(sign) * toInt64(input_tokens)) AS input_tokens, sum(toInt64(sign) * toInt64(output_tokens)) AS output_tokens,
  toString(sumIf(cost_usd, sign = 1) - sumIf(cost_usd, sign = -1)) AS cost, min(started_at) AS first_seen, max(ended_at) AS last_seen
FROM traces
WHERE org_id = {org_id:String}
  /*if by_session*/AND session_id != ''/*end*/
  /*if by_user*/AND user_id != ''/*end*/
  /*if session_id*/AND session_id = {session_id:String}/*end*/
  /*if user_id*/AND user_id = {user_id:String}/*end*/
  /*if agent_id*/AND agent_id = {agent_id:String}/*end*/
  /*if since_ms*/AND anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
  /*if until_ms*/AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
GROUP BY id
HAVING traces > 0
