-- The best documents by BM25, without reading a text: presence of a word comes from the text index, tf is 1 + its repeats,
-- dl is a column. `must` are the words of which a document needs one; `also` are scored where they occur and stand in WHERE
-- only because the index is read for calls that stand there.
SELECT started_at, toUnixTimestamp64Milli(started_at) AS started_ms, span_id, log_seq, log_index, log_sub,
  0 /*each plain*/+ if(hasAllTokens(concat(prompt, '\n', response, ' ', extra_words), {plain_word:String}),
    {plain_weight:Float64} * (1 + countEqual(reps, {plain_hash:UInt32})) / (1 + countEqual(reps, {plain_hash:UInt32}) + 1.2 * (0.25 + 0.75 * dl / {avgdl:Float64})), 0)/*end*/
  /*each stops*/+ if(hasAllTokens(concat(prompt, '\n', response, ' ', extra_words), {stops_word:String}),
    {stops_weight:Float64} * (1 + countEqual(stop_reps, {stops_hash:UInt32})) / (1 + countEqual(stop_reps, {stops_hash:UInt32}) + 1.2 * (0.25 + 0.75 * dl / {avgdl:Float64})), 0)/*end*/ AS score
  /*if counted*/, count() OVER () AS candidates/*end*/
FROM span_texts
WHERE org_id = {org_id:String}
  /*if since_ms*/AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
  /*if model*/AND model = {model:String}/*end*/
  /*if outcome*/AND outcome = {outcome:String}/*end*/
  /*if min_cost_usd*/AND cost_usd >= {min_cost_usd:Float64}/*end*/
  /*if max_cost_usd*/AND cost_usd <= {max_cost_usd:Float64}/*end*/
  AND (/*each must with OR*/hasAllTokens(concat(prompt, '\n', response, ' ', extra_words), {must_word:String})/*end*/)
  /*each also*/AND (hasAllTokens(concat(prompt, '\n', response, ' ', extra_words), {also_word:String}) OR NOT hasAllTokens(concat(prompt, '\n', response, ' ', extra_words), {also_word:String}))/*end*/
ORDER BY score DESC, started_at DESC, log_seq, log_index, log_sub
LIMIT {rows:UInt32}
