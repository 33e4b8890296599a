-- Scores of one eval, by the prefix of the key.
org_id = {org_id:String} AND judge_id = {judge_id:String} AND eval_id = {eval_id:String}
