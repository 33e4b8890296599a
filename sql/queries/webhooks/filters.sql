org_id = {org_id:String} AND target_id = {target_id:String} AND at >= now64(3) - INTERVAL 30 DAY
  /*if event_id*/AND event_id = {event_id:String}/*end*/
  /*if event*/AND event = {event:String}/*end*/
  /*if outcome*/AND outcome = {outcome:String}/*end*/
