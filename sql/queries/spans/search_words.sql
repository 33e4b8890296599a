-- In how many documents each word occurs, and any of them. hasAllTokens in SELECT is read from the text index, as the same call stands in WHERE.
SELECT [/*each words with ,*/countIf(hasAllTokens(concat(prompt, '\n', response, ' ', extra_words), {words_word:String}))/*end*/] AS df, count() AS any
FROM span_texts
WHERE org_id = {org_id:String}
  /*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
  AND (/*each words with OR*/hasAllTokens(concat(prompt, '\n', response, ' ', extra_words), {words_word:String})/*end*/)
SETTINGS use_text_index_postings_cache = 1
