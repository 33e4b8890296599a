-- Filters of the audit log. A mutation that failed changed nothing; one without an outcome is shown
-- as unknown once it is too old to be in progress. Both rows of a mutation are in one partition, and
-- hold the same values of the filtered columns, except that the first may lack the id of the target.
org_id = {org_id:String}
AND (outcome = 'done' OR (outcome = 'unknown' AND created_at <= fromUnixTimestamp64Milli({settled_ms:Int64}, 'UTC')))
/*if action*/AND action = {action:String}/*end*/
/*if actor_id*/AND actor_id = {actor_id:String}/*end*/
/*if target_id*/AND target_id = {target_id:String}/*end*/
/*if since_ms*/AND created_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
/*if until_ms*/AND created_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
