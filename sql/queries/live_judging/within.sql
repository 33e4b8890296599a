-- Rows of the given traces within a time range.
/*include live_judging/traces.sql*/
AND started_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND started_at <= fromUnixTimestamp64Milli({until:Int64}, 'UTC')
