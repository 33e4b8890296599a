-- Costs of each day by the place of its group in the answer; groups without a place have 255.
SELECT toUInt16(day) AS on_day, transform(sipHash64(first, second, agent), {group_keys:Array(UInt64)}, {places:Array(UInt8)}, toUInt8(255)) AS place,
  toString(sum(cost)) AS cost_usd, sum(used) AS tokens
FROM (/*include costs/series_rows.sql*/)
GROUP BY on_day, place
