-- Traces, among the given ones, with a span whose texts contain all words and phrases. The index
-- finds the words; the engine reads only the texts of those spans.
SELECT DISTINCT trace_key
FROM span_texts
WHERE org_id = {org_id:String}
  AND started_at BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
  AND trace_key IN {trace_keys:Array(UInt64)}
  AND hasAllTokens(concat(prompt, '\n', response, ' ', extra_words), {words:Array(String)})
  AND /*each phrases with AND*/(match(prompt, {phrases_pattern:String}) OR match(response, {phrases_pattern:String}))/*end*/
