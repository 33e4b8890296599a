-- Traces, among the given ones, with a span whose texts contain all words and phrases.
SELECT DISTINCT trace_key
FROM span_texts
WHERE org_id = {org_id:String}
  AND started_at BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
  AND trace_key IN {trace_keys:Array(UInt64)}
  AND hasAllTokens(words, {words:Array(String)})
  AND /*include traces/has_phrases.sql*/
