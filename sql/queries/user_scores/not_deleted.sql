-- Leaves out deletions, and the scores that they delete.
name != '' AND score_id NOT IN (SELECT score_id FROM user_scores WHERE org_id = {org_id:String} AND name = '')
