-- Live scores of one judge within the asked time. Rows of evals have an eval_id.
org_id = {org_id:String} AND judge_id = {judge_id:String} AND eval_id = '' AND scored_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
/*if verdicts*/AND verdict IN {verdicts:Array(String)}/*end*/
/*if judge_version*/AND judge_version = {judge_version:UInt32}/*end*/
