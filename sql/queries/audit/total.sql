-- Number of mutations of a list.
SELECT count() AS total FROM audit_log FINAL WHERE /*include audit/filters.sql*/
SETTINGS do_not_merge_across_partitions_select_final = 1
