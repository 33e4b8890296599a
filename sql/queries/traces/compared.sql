-- One trace as the sum of its spans. The root is the earliest span without a parent; agent_id is
-- the root's, else the first one received.
SELECT count() AS spans,
  greatest(0, dateDiff('millisecond', min(s.started_at), max(s.ended_at))) AS duration_ms,
  sum(s.input_tokens) AS input_tokens, sum(s.output_tokens) AS output_tokens, toFloat64(sum(s.cost_usd)) AS cost_usd,
  multiIf(countIf(s.outcome = 'error') > 0, 'error', countIf(s.outcome = 'timeout') > 0, 'timeout', 'success') AS outcome,
  argMinIf(s.name, (s.started_at, s.log_seq, s.log_index, s.log_sub), s.parent_span_id = '') AS root_span_name,
  argMinIf(s.agent_id, (s.started_at, s.log_seq, s.log_index, s.log_sub), s.parent_span_id = '') AS root_agent_id,
  argMinIf(s.agent_id, (s.log_seq, s.log_index, s.log_sub), s.agent_id != '') AS first_agent_id,
  arraySort(groupUniqArrayIf(200)(toString(s.model), s.model != '')) AS models,
  arraySort(groupUniqArrayArray(200)(s.tags)) AS tags
FROM spans AS s
WHERE /*include traces/one.sql*/
HAVING count() > 0
