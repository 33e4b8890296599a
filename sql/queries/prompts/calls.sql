-- Model calls that named a prompt, within the asked time.
org_id = {org_id:String} AND prompt_name = {name:String} AND kind = 'llm'
AND started_at >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND started_at <= fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
