-- Answers analytics of months from days instead of hours where buckets begin with days of UTC. Models and agents have a projection
-- each: a day of both together has as many values as its hours, while digests of one of them are large enough to be compressed. They
-- hold states of the functions in place of their values, because the engine reads a projection only for the very same expressions, and
-- only states of days can be merged with those of the rows before the first whole day and after the last one. sql/analytics/days.ts
-- writes them. Granules are small, because an organization has few rows in each of the parts, and the engine reads the digests of whole
-- granules.
ALTER TABLE spans ADD PROJECTION IF NOT EXISTS p_day_model (
  SELECT
    org_id,
    toDate(started_at),
    kind,
    model,
    outcome,
    environment,
    countState(),
    countIfState(outcome != 'success'),
    sumState(cost_usd),
    sumState(input_tokens),
    sumState(output_tokens),
    sumState(cached_input_tokens),
    sumState(cache_write_tokens),
    sumState(reasoning_tokens),
    sumState(dateDiff('millisecond', started_at, ended_at)),
    minState(dateDiff('millisecond', started_at, ended_at)),
    maxState(dateDiff('millisecond', started_at, ended_at)),
    quantilesTDigestState(0.5, 0.75, 0.9, 0.95, 0.99)(dateDiff('millisecond', started_at, ended_at)),
    sumState(first_token_ms),
    countIfState(first_token_ms > 0),
    quantilesTDigestIfState(0.5, 0.75, 0.9, 0.95, 0.99)(first_token_ms, first_token_ms > 0)
  GROUP BY org_id, toDate(started_at), kind, model, outcome, environment
) WITH SETTINGS (index_granularity = 1024);
ALTER TABLE spans ADD PROJECTION IF NOT EXISTS p_day_agent (
  SELECT
    org_id,
    toDate(started_at),
    kind,
    agent_id,
    outcome,
    environment,
    countState(),
    countIfState(outcome != 'success'),
    sumState(cost_usd),
    sumState(input_tokens),
    sumState(output_tokens),
    sumState(cached_input_tokens),
    sumState(cache_write_tokens),
    sumState(reasoning_tokens),
    sumState(dateDiff('millisecond', started_at, ended_at)),
    minState(dateDiff('millisecond', started_at, ended_at)),
    maxState(dateDiff('millisecond', started_at, ended_at)),
    quantilesTDigestState(0.5, 0.75, 0.9, 0.95, 0.99)(dateDiff('millisecond', started_at, ended_at)),
    sumState(first_token_ms),
    countIfState(first_token_ms > 0),
    quantilesTDigestIfState(0.5, 0.75, 0.9, 0.95, 0.99)(first_token_ms, first_token_ms > 0)
  GROUP BY org_id, toDate(started_at), kind, agent_id, outcome, environment
) WITH SETTINGS (index_granularity = 1024);
-- In the background, part after part. Until it is done, analytics reads hours (sql/analytics/has_days.ts), so it also may run while
-- older processes read. A repeat of this statement makes nothing twice.
ALTER TABLE spans MATERIALIZE PROJECTION p_day_model, MATERIALIZE PROJECTION p_day_agent SETTINGS mutations_sync = 0, alter_sync = 0;
