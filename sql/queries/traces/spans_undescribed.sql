-- Spans between the start of the first and the end of the last trace, within the asked time, that
-- only its spans describe. Without such a trace both bounds are the epoch, and no span is read. The
-- engine runs the same subquery once.
org_id = {org_id:String}
AND started_at >= (
  SELECT (min(t.started_at), max(t.ended_at)) FROM traces AS t WHERE t.org_id = {org_id:String} AND NOT t.described
    /*if since_ms*/AND t.anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND t.started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
    /*if until_ms*/AND t.started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
).1
AND started_at <= (
  SELECT (min(t.started_at), max(t.ended_at)) FROM traces AS t WHERE t.org_id = {org_id:String} AND NOT t.described
    /*if since_ms*/AND t.anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND t.started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
    /*if until_ms*/AND t.started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
).2
