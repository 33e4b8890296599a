-- By default the engine reads fewer than 163,840 rows of a part with one thread. For reads that take long
-- for each row, such as parsing JSON or merging digests.
merge_tree_min_rows_for_concurrent_read = 16384, merge_tree_min_bytes_for_concurrent_read = 1, merge_tree_min_read_task_size = 1
