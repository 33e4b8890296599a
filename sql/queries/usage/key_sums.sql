-- Use of each API key of an organization in the day, the week and the month that contain an instant.
SELECT
  key_id,
  sumIf(input_tokens + output_tokens, hour >= fromUnixTimestamp64Milli({day:Int64}, 'UTC')) AS day_tokens,
  toString(sumIf(u.cost_usd, hour >= fromUnixTimestamp64Milli({day:Int64}, 'UTC'))) AS day_cost_usd,
  sumIf(input_tokens + output_tokens, hour >= fromUnixTimestamp64Milli({week:Int64}, 'UTC')) AS week_tokens,
  toString(sumIf(u.cost_usd, hour >= fromUnixTimestamp64Milli({week:Int64}, 'UTC'))) AS week_cost_usd,
  sumIf(input_tokens + output_tokens, hour >= fromUnixTimestamp64Milli({month:Int64}, 'UTC')) AS month_tokens,
  toString(sumIf(u.cost_usd, hour >= fromUnixTimestamp64Milli({month:Int64}, 'UTC'))) AS month_cost_usd
FROM usage_events AS u
WHERE org_id = {org_id:String} AND key_id != '' AND hour >= fromUnixTimestamp64Milli(least({week:Int64}, {month:Int64}), 'UTC')
GROUP BY key_id
