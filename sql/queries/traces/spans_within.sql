-- Spans of the traces that started within the asked time. No span starts before its trace, and none
-- after the end of the last trace.
org_id = {org_id:String}
/*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
/*if until_ms*/AND started_at <= (
  SELECT max(t.ended_at) FROM traces AS t
  WHERE t.org_id = {org_id:String}
    /*if since_ms*/AND t.anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND t.started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
    AND t.started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')
)/*end*/
