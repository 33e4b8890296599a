-- Traces of the texts that have all the words. No span starts before its trace.
SELECT trace_key FROM span_texts
WHERE org_id = {org_id:String}
  /*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
  AND hasAllTokens(words, {words:Array(String)})
