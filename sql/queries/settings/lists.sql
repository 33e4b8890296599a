-- Reads of a page decompress the same few blocks again and again. Starting threads for the indexes of a few parts takes
-- longer than looking at them.
use_uncompressed_cache = 1, max_threads_for_indexes = 1
