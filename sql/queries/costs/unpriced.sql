-- Models without a price, by the calls that cost nothing because of that, with the most tokens
-- first.
SELECT model, count() AS calls, sum(input_tokens) AS tokens_in, sum(output_tokens) AS tokens_out, toUnixTimestamp64Milli(max(started_at)) AS last_ms
FROM spans
WHERE org_id = {org_id:String} AND started_at >= toDateTime64(toDate({from:UInt16}), 3, 'UTC') AND started_at < toDateTime64(toDate({until:UInt16}), 3, 'UTC')
  AND price_source = 'missing'
GROUP BY model
ORDER BY tokens_in + tokens_out DESC, calls DESC, model
LIMIT {rows:UInt32}
