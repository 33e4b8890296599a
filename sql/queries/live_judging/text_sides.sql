-- Spans of the given traces that have a text, with the side that is not empty: prompt, response or
-- both. While the text mover runs, a text may be in both tables.
SELECT org_id, trace_id, toString(log_seq) AS seq, log_index, log_sub, notEmpty(prompt) AS has_prompt, notEmpty(response) AS has_response
FROM span_texts_recent
WHERE /*include live_judging/within.sql*/ AND log_seq <= {through:UInt64}
UNION ALL
SELECT org_id, trace_id, toString(log_seq) AS seq, log_index, log_sub, notEmpty(prompt) AS has_prompt, notEmpty(response) AS has_response
FROM span_texts
WHERE /*include live_judging/within.sql*/ AND log_seq <= {through:UInt64}
