-- Both threads for reads of more than a million rows, of which the engine otherwise gives one (threads.sql says why).
-- Shorter ones stay with one thread, because the statements of a request run beside each other.
max_threads_min_free_memory_per_thread = 0, merge_tree_min_rows_for_concurrent_read = 1000000
