-- Number of documents in which each word occurs, and number with any of them. The engine answers
-- hasAllTokens in SELECT from the text index, because the same call is in WHERE.
SELECT [/*each words with ,*/countIf(hasAllTokens(words, {words_word:String}))/*end*/] AS df, count() AS any
FROM span_texts
WHERE org_id = {org_id:String}
  /*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
  /*if until_ms*/AND started_at <= fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')/*end*/
  AND (/*each words with OR*/hasAllTokens(words, {words_word:String})/*end*/)
SETTINGS use_text_index_postings_cache = 1
