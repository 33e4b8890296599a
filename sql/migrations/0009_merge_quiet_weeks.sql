-- A search asks the text index of every part, so parts, not rows, are the floor of its time. Weeks that get no more texts are
-- merged into one part an hour after their last; the running week is left to the usual merges.
ALTER TABLE span_texts MODIFY SETTING min_age_to_force_merge_seconds = 3600, min_age_to_force_merge_on_partition_only = 1;
