-- Scores of people and applications on traces that started at or after the asked time.
org_id = {org_id:String} AND /*include user_scores/not_deleted.sql*/
/*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
