-- Scores that judges gave within a time.
org_id = {org_id:String}
    AND scored_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND scored_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')
    /*if names*/AND judge_name IN {names:Array(String)}/*end*/
    /*if user*/AND 0/*end*/
    /*if trace_ids*/AND trace_key IN arrayMap(id -> sipHash64(id), {trace_ids:Array(String)}) AND trace_id IN {trace_ids:Array(String)}/*end*/
    /*if user_only*/AND 0/*end*/
    /*if otel_only*/AND 0/*end*/
