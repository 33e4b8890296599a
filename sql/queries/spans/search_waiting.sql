-- Number of texts of the searched time that have landed and are still to be moved.
SELECT count() AS waiting
FROM span_texts_recent
WHERE org_id = {org_id:String}
  /*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
  /*if until_ms*/AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
