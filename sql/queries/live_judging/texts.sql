-- Prompts and responses of the spans at the given log positions. While the text mover runs, a text
-- may be in both tables.
SELECT org_id, trace_id, toString(log_seq) AS seq, log_index, log_sub, prompt, response
FROM span_texts_recent
WHERE /*include live_judging/within.sql*/ AND /*include live_judging/places.sql*/
UNION ALL
SELECT org_id, trace_id, toString(log_seq) AS seq, log_index, log_sub, prompt, response
FROM span_texts
WHERE /*include live_judging/within.sql*/ AND /*include live_judging/places.sql*/
