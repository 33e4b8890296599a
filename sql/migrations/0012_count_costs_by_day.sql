-- What each day cost, by model, agent, department and realm, and which outcomes it had: more columns of the usage rows, so
-- that costs land in the very insert that use lands in, once each, and outlive the spans. The day is the one on which the
-- event's own span started, UTC; the hour stays that of receipt, by which budgets count.
-- Rows of before this migration count on the day of their receipt, under no model.
ALTER TABLE usage_events
  ADD COLUMN IF NOT EXISTS day Date DEFAULT toDate(hour) COMMENT 'Day on which the events began, UTC' CODEC(Delta(2), ZSTD(1)) AFTER hour,
  ADD COLUMN IF NOT EXISTS model LowCardinality(String) COMMENT 'Model, empty where none was called' AFTER agent_id,
  ADD COLUMN IF NOT EXISTS department LowCardinality(String) COMMENT 'attributes.department, empty for none' AFTER model,
  ADD COLUMN IF NOT EXISTS realm LowCardinality(String) COMMENT 'attributes.realm, empty for none' AFTER department,
  ADD COLUMN IF NOT EXISTS outcome_names Array(LowCardinality(String)) COMMENT 'Names in attributes.outcomes' AFTER cost_usd,
  ADD COLUMN IF NOT EXISTS outcome_values Array(Decimal(38, 12)) COMMENT 'Their sums, in the order of the names' CODEC(ZSTD(1)) AFTER outcome_names;

-- Answers reads of costs without touching the rows of each landing, and commits with its part, so it cannot drift. The names
-- are kept apart, as a sum that comes to 0 leaves a map of sums.
ALTER TABLE usage_events ADD PROJECTION IF NOT EXISTS p_day (
  SELECT org_id, day, model, agent_id, department, realm, sum(cost_usd), sum(input_tokens), sum(output_tokens), sumMap(outcome_names, outcome_values), groupUniqArrayArray(outcome_names)
  GROUP BY org_id, day, model, agent_id, department, realm
);
ALTER TABLE usage_events MODIFY SETTING lightweight_mutation_projection_mode = 'rebuild';
ALTER TABLE usage_events MATERIALIZE PROJECTION p_day;
ALTER TABLE usage_events MODIFY COMMENT 'What was used for each landing, org, agent, hour of receipt, day and model, whatever sampling kept.';
