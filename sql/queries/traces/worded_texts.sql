-- Texts of the given traces that have all the words, by trace: their document numbers, starts in
-- milliseconds and numbers of words, as lists of the same order.
WITH
  segments AS (/*include spans/segments_within.sql*/),
  (/*include spans/docs_with_words.sql*/) AS found,
  bitmapCardinality(found) > 500000 AS many
SELECT trace_key, groupArrayIf(doc, has_words) AS docs, groupArrayIf(toUnixTimestamp64Milli(started_at), has_words) AS times, groupArrayIf(dl, has_words) AS lengths
FROM (
  SELECT trace_key, doc, started_at, dl, if(many, bitmapContains(found, doc), 1) AS has_words
  FROM span_texts
  WHERE org_id = {org_id:String} AND /*include spans/found_docs.sql*/
    AND started_at BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
    AND trace_key IN {trace_keys:Array(UInt64)}
)
GROUP BY trace_key
HAVING notEmpty(docs)
SETTINGS use_index_for_in_with_subqueries_max_values = 10000
