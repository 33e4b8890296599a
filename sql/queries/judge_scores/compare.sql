-- Page of a comparison, in the order of items or traces.
SELECT *
FROM (/*include judge_scores/pairs.sql*/)
ORDER BY item_index, greatest(baseline_trace_id, candidate_trace_id)
LIMIT {skip:UInt64}, {rows:UInt32}
