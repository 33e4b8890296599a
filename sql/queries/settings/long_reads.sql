-- Reads of more than a million rows take both threads of the engine; by default they have one (threads.sql says why).
-- Shorter reads keep one thread, because the statements of a request run beside each other.
max_threads_min_free_memory_per_thread = 0, merge_tree_min_rows_for_concurrent_read = 1000000
