-- Every projection that an insert makes is one more part to write. Costs by agent, department and realm are read from the usage
-- rows, which hold them by day and outlive the spans, so spans need these two no more. p_model stays: analyst_costs_daily counts
-- spans by it.
ALTER TABLE spans DROP PROJECTION IF EXISTS p_agent;
ALTER TABLE spans DROP PROJECTION IF EXISTS p_department;
-- p_day is made when parts are merged, not when they land: what has just landed is read from its rows, which are few.
ALTER TABLE usage_events MODIFY SETTING materialize_projections_on_insert = 0, materialize_projections_on_merge = 1;
