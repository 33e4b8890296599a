-- Reads of a page decompress the same few blocks again and again, also where they look at millions of rows; by default
-- the engine caches nothing of reads of more than a million. Starting threads for the indexes of a few parts takes
-- longer than looking at them.
use_uncompressed_cache = 1, merge_tree_max_rows_to_use_cache = 4000000, max_threads_for_indexes = 1
