-- Answers a list of one user's traces from a few granules. The traces of a user are scattered over the organization's time, so that
-- a read of the table itself decompresses every column of half of it. The projection holds what an item of the list shows and its
-- filters compare, except for the lists of values of spans, which would triple its cost. Parts get it when they are merged: what has
-- just landed is read from its rows. It commits with its part, so it cannot drift. A merge that collapses pairs makes it anew. Each part
-- holds a user's rows of all columns side by side in one file, because opening a file for each column took longer than reading it.
-- The engine leaves masked rows in a projection that has an order of its own. sql/stores/retention.ts resets their user, and the order
-- has nothing but the user besides the organization: the engine reads the projection only where it has fewer granules than the table,
-- which takes a condition on the user.
ALTER TABLE traces MODIFY SETTING
  materialize_projections_on_insert = 0,
  materialize_projections_on_merge = 1,
  deduplicate_merge_projection_mode = 'rebuild',
  lightweight_mutation_projection_mode = 'rebuild';
ALTER TABLE traces ADD PROJECTION IF NOT EXISTS p_user (
  SELECT
    org_id,
    user_id,
    started_at,
    trace_key,
    version,
    sign,
    anchor,
    trace_id,
    ended_at,
    duration_ms,
    root_span_name,
    agent_id,
    outcome,
    session_id,
    tags,
    spans,
    input_tokens,
    output_tokens,
    cost_usd,
    sampled
  ORDER BY (org_id, user_id)
) WITH SETTINGS (index_granularity = 1024, min_bytes_for_wide_part = 1000000000000);
-- In the background, part after part. A repeat of this statement makes nothing twice.
ALTER TABLE traces MATERIALIZE PROJECTION p_user SETTINGS mutations_sync = 0, alter_sync = 0;
