-- Postings of words in some segments: the index of the word, the segment, and the places of documents
-- with the word; if asked, how often each has it, with no numbers where each has it once. A word and a
-- segment may have several rows.
WITH arrayMap(word -> cityHash64(word), {words:Array(String)}) AS hashes
SELECT toUInt8(indexOf(hashes, word) - 1), segment, places /*if counted*/, if(arraySum(counts) = length(counts), [], counts)/*end*/
FROM span_words
WHERE word IN (SELECT cityHash64(arrayJoin({words:Array(String)})))
  AND segment >= {first:UInt64} AND segment <= {last:UInt64} AND segment IN {segments:Array(UInt64)}
SETTINGS /*include settings/threads.sql*/
FORMAT RowBinary
