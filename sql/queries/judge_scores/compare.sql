-- Page of a comparison: in the order of items or traces, or by the size of the change.
SELECT *
FROM (/*include judge_scores/pairs.sql*/)
WHERE /*include judge_scores/compared.sql*/
ORDER BY /*if by_delta*/abs(delta) DESC NULLS LAST, /*end*/item_index, greatest(baseline_trace_id, candidate_trace_id)
LIMIT {skip:UInt64}, {rows:UInt32}
