-- Best documents by BM25. Ranking reads no text: the text index says whether a word is present, tf
-- is 1 plus the word's repeats, and dl is a column. The engine reads texts only for the rows that
-- remain. Words of `also` add to the score but need not occur; they are in WHERE only because the
-- engine uses the index for calls that are there.
SELECT span_id, trace_id, prompt, response, model, toUnixTimestamp64Milli(started_at) AS started_ms, log_seq, log_index, log_sub,
  0 /*each plain*/+ if(hasAllTokens(words, {plain_word:String}),
    {plain_weight:Float64} * (1 + countEqual(reps, {plain_hash:UInt32})) / (1 + countEqual(reps, {plain_hash:UInt32}) + 1.2 * (0.25 + 0.75 * dl / {avgdl:Float64})), 0)/*end*/
  /*each stops*/+ if(hasAllTokens(words, {stops_word:String}),
    {stops_weight:Float64} * (1 + countEqual(stop_reps, {stops_hash:UInt32})) / (1 + countEqual(stop_reps, {stops_hash:UInt32}) + 1.2 * (0.25 + 0.75 * dl / {avgdl:Float64})), 0)/*end*/ AS score
  /*if finds*/, words, reps, stop_reps, dl, outcome, cost_usd, started_at/*end*/
FROM span_texts
WHERE /*include spans/candidates.sql*/
  /*each also*/AND (hasAllTokens(words, {also_word:String}) OR NOT hasAllTokens(words, {also_word:String}))/*end*/
ORDER BY score DESC, started_at DESC
LIMIT {rows:UInt32}
