-- Mutations of an organization, newest first, from a position on.
SELECT audit_id, org_id, outcome, actor_type, actor_id, action, target_type, target_id, changes, request_id, ip,
  toUnixTimestamp64Milli(created_at) AS created_ms
FROM audit_log FINAL
WHERE /*include audit/filters.sql*/
  /*if from_ms*/AND created_at <= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC')
  AND (created_at, audit_id) < (fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC'), {from_id:String})/*end*/
ORDER BY created_at DESC, audit_id DESC
LIMIT {rows:UInt32}
SETTINGS do_not_merge_across_partitions_select_final = 1
