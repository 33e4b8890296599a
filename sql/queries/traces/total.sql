-- Number of traces of a list. It is exact without FINAL, because the rows of a pair cancel out. With
-- words, also the keys of the traces, up to 4000, so that further reads need not look for the words.
SELECT sum(sign) AS total /*if words*/, if(length(groupUniqArray(4001)(trace_key) AS keys) > 4000, [], keys) AS trace_keys/*end*/
FROM traces
WHERE /*include traces/filters.sql*/ /*include traces/counted_part.sql*/
SETTINGS /*include settings/cached.sql*/, /*include settings/long_reads.sql*/ /*if user_id*/, /*include settings/by_user.sql*//*end*/
