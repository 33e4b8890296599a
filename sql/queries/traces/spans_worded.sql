-- Traces, each once, of the texts that have all the words. No span starts before its trace, so
-- segments whose documents of the organization start before the asked time have nothing to find.
WITH
  segments AS (
    SELECT bitShiftRight(doc, 16) AS segment
    FROM span_texts
    WHERE org_id = {org_id:String}
    GROUP BY org_id, bitShiftRight(doc, 16)
    /*if since_ms*/HAVING max(started_at) >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')/*end*/
  ),
  (/*include spans/docs_with_words.sql*/) AS found,
  bitmapCardinality(found) > 500000 AS many
SELECT arrayJoin(groupUniqArrayIf(trace_key, if(many, bitmapContains(found, doc), 1))) AS worded_key
FROM span_texts
WHERE org_id = {org_id:String} AND /*include spans/found_docs.sql*/
SETTINGS use_index_for_in_with_subqueries_max_values = 10000
