-- Everything that judges see of traces except texts: sums over the spans, and fields of the head,
-- which is the earliest span without a parent, else the earliest span.
SELECT trace_id, min(place.1) = 0 AS has_root,
  argMin(name, place) AS head_name, argMin(source_format, place) AS head_format, argMin(agent_id, place) AS head_agent,
  argMin(attributes, place) AS head_attributes, argMin(started_at, place) AS head_at, argMin(log_seq, place) AS head_seq,
  argMin(log_index, place) AS head_index, argMin(log_sub, place) AS head_sub,
  argMinIf(agent_id, (log_seq, log_index, log_sub), agent_id != '') AS first_agent,
  countIf(outcome = 'error') AS errors, countIf(outcome = 'timeout') AS timeouts,
  toUnixTimestamp64Milli(min(started_at)) AS started_ms, toUnixTimestamp64Milli(max(ended_at)) AS ended_ms,
  sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, sum(cost_usd) AS cost_usd,
  groupUniqArrayArray(200)(tags) AS tags
FROM (
  SELECT trace_id, started_at, ended_at, name, source_format, outcome, agent_id, attributes, tags, input_tokens, output_tokens, cost_usd,
    log_seq, log_index, log_sub, (parent_span_id != '', started_at, log_seq, log_index, log_sub) AS place
  FROM spans
  WHERE /*include judging/stretch.sql*/
)
GROUP BY trace_id
