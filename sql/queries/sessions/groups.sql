-- Traces of an organization by session or by end user. Until a merge, every replaced state of a
-- trace has two rows, one with each sign, so sums over the signs are exact. Time bounds are exact
-- too while nothing is filtered: a trace only grows, so the bounds of its current state contain
-- those of the replaced states. A filter can match a replaced state but not the current one; with a
-- filter, the statement therefore adds up the signs of each state first and counts only the states
-- that remain.
SELECT id, sum(live) AS traces, sum(live * span_count) AS spans, sum(live * failed) AS failed_traces,
  sum(live * tokens_in) AS input_tokens, sum(live * tokens_out) AS output_tokens,
  toString(sumIf(usd, live > 0) - sumIf(usd, live < 0)) AS cost, min(first_at) AS first_seen, max(last_at) AS last_seen
FROM (
  /*if unfiltered*/SELECT /*if by_session*/session_id/*end*//*if by_user*/user_id/*end*/ AS id, toInt64(sign) AS live, spans AS span_count,
    outcome != 'success' AS failed, toInt64(input_tokens) AS tokens_in, toInt64(output_tokens) AS tokens_out, cost_usd AS usd,
    started_at AS first_at, ended_at AS last_at
  FROM traces
  WHERE /*include sessions/filters.sql*//*end*/
  /*if filtered*/SELECT any(/*if by_session*/session_id/*end*//*if by_user*/user_id/*end*/) AS id, sum(toInt64(sign)) AS live, any(spans) AS span_count,
    any(outcome != 'success') AS failed, any(toInt64(input_tokens)) AS tokens_in, any(toInt64(output_tokens)) AS tokens_out, any(cost_usd) AS usd,
    any(started_at) AS first_at, any(ended_at) AS last_at
  FROM traces
  WHERE /*include sessions/filters.sql*/
  GROUP BY trace_key, version
  HAVING live > 0/*end*/
)
GROUP BY id
HAVING traces > 0
