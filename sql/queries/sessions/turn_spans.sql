-- Spans of the given traces in which the text of the user and the answer are looked for, the best
-- first: the earliest root and model calls for the text of the user, the root and model calls that
-- ended last for the answer.
SELECT trace_id,
  groupArraySorted({spans_max:UInt32})((parent_span_id != '', kind != 'llm', toUnixTimestamp64Milli(started_at), log_seq, log_index, log_sub)) AS asked,
  groupArraySorted({spans_max:UInt32})((parent_span_id != '', kind != 'llm', -toUnixTimestamp64Milli(ended_at), toUnixTimestamp64Milli(started_at), log_seq, log_index, log_sub)) AS answered
FROM spans
WHERE org_id = {org_id:String}
  AND started_at BETWEEN fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC') AND fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC')
  AND trace_key IN {trace_keys:Array(UInt64)}
GROUP BY trace_id
