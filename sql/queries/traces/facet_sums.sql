-- Number of traces by the values of several fields, each field by itself, in one pass over the
-- traces. A row has the value of one field and null for the others; the row without any is the
-- total. Numbers are rounded down to an edge. The empty value of a field comes before its
-- commonest ones, so that the limit never cuts it off. Traces without tags are counted in the same pass,
-- because the array join of facet_values.sql leaves them out. With slices, only their traces are counted.
SELECT sum(sign) AS traces /*if by_untagged*/, sumIf(sign, empty(tags)) AS untagged/*end*/
  /*if by_outcome*/, outcome/*end*/
  /*if by_agent_id*/, agent_id/*end*/
  /*if by_root_span_name*/, root_span_name/*end*/
  /*if by_sampled*/, toString(sampled) AS kept/*end*/
  /*if by_duration_ms*/, roundDown(toFloat64(duration_ms), {whole_edges:Array(Float64)}) AS duration_from/*end*/
  /*if by_cost_usd*/, roundDown(toFloat64(cost_usd), {cost_edges:Array(Float64)}) AS cost_from/*end*/
  /*if by_tokens*/, roundDown(toFloat64(input_tokens + output_tokens), {whole_edges:Array(Float64)}) AS tokens_from/*end*/
FROM traces
WHERE /*include traces/filters.sql*/ /*include traces/counted_part.sql*/
GROUP BY GROUPING SETS (()
  /*if by_outcome*/, (outcome)/*end*/
  /*if by_agent_id*/, (agent_id)/*end*/
  /*if by_root_span_name*/, (root_span_name)/*end*/
  /*if by_sampled*/, (kept)/*end*/
  /*if by_duration_ms*/, (duration_from)/*end*/
  /*if by_cost_usd*/, (cost_from)/*end*/
  /*if by_tokens*/, (tokens_from)/*end*/)
HAVING traces > 0
ORDER BY traces < 0 /*if by_agent_id*/OR ifNull(agent_id = '', false)/*end*/ /*if by_root_span_name*/OR ifNull(root_span_name = '', false)/*end*/ DESC, traces DESC
LIMIT {rows:UInt32} BY traces > 0
  /*if by_outcome*/, isNull(outcome)/*end*/
  /*if by_agent_id*/, isNull(agent_id)/*end*/
  /*if by_root_span_name*/, isNull(root_span_name)/*end*/
  /*if by_sampled*/, isNull(kept)/*end*/
  /*if by_duration_ms*/, isNull(duration_from)/*end*/
  /*if by_cost_usd*/, isNull(cost_from)/*end*/
  /*if by_tokens*/, isNull(tokens_from)/*end*/
SETTINGS group_by_use_nulls = 1, /*include settings/cached.sql*/
