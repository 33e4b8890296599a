-- Costs of a period and of the period of the same length before it, by group, the costliest group
-- first; a group is named by a key of 64 bits. The row with is_total covers all groups.
SELECT
  grouping(first) AS is_total,
  toString(sipHash64(first, second, agent)) AS group_key,
  first,
  second,
  agent,
  toString(sumIf(cost, day >= toDate({middle:UInt16}))) AS cost_usd,
  sumIf(used, day >= toDate({middle:UInt16})) AS tokens,
  toString(sumIf(cost, day < toDate({middle:UInt16}))) AS previous_cost_usd,
  sumIf(used, day < toDate({middle:UInt16})) AS previous_tokens
FROM (/*include costs/series_rows.sql*/)
GROUP BY GROUPING SETS ((first, second, agent), ())
ORDER BY is_total DESC, sumIf(cost, day >= toDate({middle:UInt16})) DESC, tokens DESC
LIMIT {groups_max:UInt32}
