-- Number of texts of the searched time that have words and no document number. The projection p_docs
-- answers it.
SELECT count() AS waiting
FROM span_texts
WHERE org_id = {org_id:String} AND doc = 0 AND dl > 0
  /*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
  /*if until_ms*/AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
