-- By default the engine takes one thread for each GiB of its memory that is free, so on a small server
-- every read has one. For reads with little memory and much to decompress; where several statements of a
-- request run beside each other, more threads only get in each other's way.
max_threads_min_free_memory_per_thread = 0
