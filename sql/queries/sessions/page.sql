-- Sessions or end users of an organization, last seen first, from a position on.
SELECT id, toInt64(traces) AS traces, spans, failed_traces, input_tokens, output_tokens, cost, toUnixTimestamp64Milli(first_seen) AS first_ms,
  toUnixTimestamp64Milli(last_seen) AS last_ms
FROM (/*include sessions/groups.sql*/)
/*if from_last_ms*/WHERE (last_seen, id) < (fromUnixTimestamp64Milli({from_last_ms:Int64}, 'UTC'), {from_id:String})/*end*/
ORDER BY last_seen DESC, id DESC
LIMIT {rows:UInt32} OFFSET {skip:UInt64}
