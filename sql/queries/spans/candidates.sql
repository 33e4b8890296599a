-- Documents that a search scores: those within its filters that contain any of the required words.
org_id = {org_id:String}
/*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
/*if model*/AND model = {model:String}/*end*/
/*if outcome*/AND outcome = {outcome:String}/*end*/
/*if min_cost_usd*/AND cost_usd >= {min_cost_usd:Float64}/*end*/
/*if max_cost_usd*/AND cost_usd <= {max_cost_usd:Float64}/*end*/
AND (/*each must with OR*/hasAllTokens(concat(prompt, '\n', response, ' ', extra_words), {must_word:String})/*end*/)
