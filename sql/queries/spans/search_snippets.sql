-- Best documents by BM25, with the part of each text around its first match and the part of the
-- score that each word adds. The patterns of `finds` are tried in turn. A match includes the
-- characters beside the word, so that its first occurrence as a text is the match itself; a match at
-- the end of a text has none behind it.
WITH
  text -> firstNonDefault(/*each finds with ,*/extract(text, {finds_pattern:String})/*end*/, '') AS found,
  (text, hit) -> if(match(hit, '[\\pL\\pN]$'), length(text) - length(hit) + 1, position(text, hit)) AS place,
  (text, hit) -> toValidUTF8(substring(text, if(hit = '', 1, greatest(1, toInt64(place(text, hit)) - {bytes_before:UInt32})), {bytes:UInt32})) AS around,
  lower(concat(prompt, '\n', response, ' ', extra_words)) AS document
SELECT span_id, trace_id, model, outcome, cost_usd, started_at, started_ms, log_seq, log_index, log_sub, score,
  around(prompt, found(prompt)) AS prompt_window, around(response, found(response)) AS response_window,
  startsWith(prompt, '[') OR startsWith(prompt, '{') AS prompt_is_json,
  [/*each plain with ,*/if(hasAllTokens(document, {plain_word:String}),
    {plain_weight:Float64} * (1 + countEqual(reps, {plain_hash:UInt32})) / (1 + countEqual(reps, {plain_hash:UInt32}) + 1.2 * (0.25 + 0.75 * dl / {avgdl:Float64})), 0)/*end*/] AS plain_parts,
  [/*each stops with ,*/if(hasAllTokens(document, {stops_word:String}),
    {stops_weight:Float64} * (1 + countEqual(stop_reps, {stops_hash:UInt32})) / (1 + countEqual(stop_reps, {stops_hash:UInt32}) + 1.2 * (0.25 + 0.75 * dl / {avgdl:Float64})), 0)/*end*/] AS stop_parts
FROM (
/*include spans/search_ranked.sql*/
)
ORDER BY score DESC, started_ms DESC
SETTINGS use_text_index_postings_cache = 1
