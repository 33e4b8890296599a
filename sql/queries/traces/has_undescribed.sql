-- Returns a row if the asked time has a trace that only its spans describe. The index of `described`
-- finds such traces without reading the others.
SELECT 1 AS found FROM traces
WHERE org_id = {org_id:String} AND NOT described
  /*if since_ms*/AND anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
  /*if until_ms*/AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
LIMIT 1
