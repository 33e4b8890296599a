-- Scores that people and applications gave within a time. A score is given after its trace started;
-- the month allows for clocks that differ, and for traces that turn out to have started earlier.
org_id = {org_id:String} AND /*include user_scores/not_deleted.sql*/
    AND created_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AND created_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')
    AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC') + INTERVAL 1 MONTH
    /*if names*/AND name IN {names:Array(String)}/*end*/
    /*if user*/AND author_id = {user:String}/*end*/
    /*if trace_ids*/AND trace_key IN arrayMap(id -> sipHash64(id), {trace_ids:Array(String)}) AND trace_id IN {trace_ids:Array(String)}/*end*/
    /*if judge_only*/AND 0/*end*/
    /*if user_only*/AND author_type != 'otel'/*end*/
    /*if otel_only*/AND author_type = 'otel'/*end*/
