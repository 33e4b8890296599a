-- Answers analytics of months from hours instead of spans. Parts get the projection when they are merged, like p_model: what has
-- just landed is read from its rows. It commits with its part, so it cannot drift. Parts that no merge touches any more stay without
-- it and are read from their rows, until an operator runs ALTER TABLE spans MATERIALIZE PROJECTION p_hour. The engine uses it only
-- for the very same expressions, which are in sql/analytics/catalog.ts.
ALTER TABLE spans ADD PROJECTION IF NOT EXISTS p_hour (
  SELECT
    org_id,
    toStartOfHour(started_at),
    kind,
    model,
    agent_id,
    outcome,
    environment,
    count(),
    countIf(outcome != 'success'),
    sum(cost_usd),
    sum(input_tokens),
    sum(output_tokens),
    sum(cached_input_tokens),
    sum(cache_write_tokens),
    sum(reasoning_tokens),
    sum(dateDiff('millisecond', started_at, ended_at)),
    min(dateDiff('millisecond', started_at, ended_at)),
    max(dateDiff('millisecond', started_at, ended_at)),
    quantilesTDigest(0.5, 0.75, 0.9, 0.95, 0.99)(dateDiff('millisecond', started_at, ended_at)),
    sum(first_token_ms),
    countIf(first_token_ms > 0),
    quantilesTDigestIf(0.5, 0.75, 0.9, 0.95, 0.99)(first_token_ms, first_token_ms > 0)
  GROUP BY org_id, toStartOfHour(started_at), kind, model, agent_id, outcome, environment
);
