-- p_model is made when parts are merged, not when they land: what has just landed is read from its rows, which are few.
ALTER TABLE spans MODIFY SETTING materialize_projections_on_insert = 0, materialize_projections_on_merge = 1;
