-- Attributes of the spans at the given log positions.
SELECT org_id, trace_id, toString(log_seq) AS seq, log_index, log_sub, attributes
FROM spans
WHERE /*include live_judging/within.sql*/ AND /*include live_judging/places.sql*/
