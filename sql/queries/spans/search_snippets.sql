-- Best documents by BM25, with their texts and the part of the score that each word adds. Texts are
-- whole up to a number of bytes in all, the best hits first; of the others only the beginnings are
-- returned.
SELECT span_id, trace_id, model, outcome, cost_usd, started_at, started_ms, log_seq, log_index, log_sub, score,
  if(bytes_before <= {bytes:UInt32}, prompt, leftUTF8(prompt, {chars:UInt32})) AS prompt,
  if(bytes_before <= {bytes:UInt32}, response, leftUTF8(response, {chars:UInt32})) AS response,
  [/*each plain with ,*/if(hasAllTokens(words, {plain_word:String}),
    {plain_weight:Float64} * (1 + countEqual(reps, {plain_hash:UInt32})) / (1 + countEqual(reps, {plain_hash:UInt32}) + 1.2 * (0.25 + 0.75 * dl / {avgdl:Float64})), 0)/*end*/] AS plain_parts,
  [/*each stops with ,*/if(hasAllTokens(words, {stops_word:String}),
    {stops_weight:Float64} * (1 + countEqual(stop_reps, {stops_hash:UInt32})) / (1 + countEqual(stop_reps, {stops_hash:UInt32}) + 1.2 * (0.25 + 0.75 * dl / {avgdl:Float64})), 0)/*end*/] AS stop_parts
FROM (
  SELECT *, sum(length(prompt) + length(response)) OVER (ORDER BY score DESC, started_ms DESC, log_seq, log_index, log_sub ROWS UNBOUNDED PRECEDING) AS bytes_before
  FROM (
/*include spans/search_ranked.sql*/
  )
)
ORDER BY score DESC, started_ms DESC
SETTINGS use_text_index_postings_cache = 1
