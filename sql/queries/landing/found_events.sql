-- Rows of the given events. An event that is sent again names its trace again, and trace_lookup
-- holds the times of that trace: without them the statement reads all spans of the organizations.
WITH (
  SELECT (min(first_at), max(last_at))
  FROM trace_lookup
  WHERE trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)})))
) AS times
SELECT org_id, leftPad(lower(hex(event_key)), 16, '0') AS event_hex, partition, log_seq, log_index
FROM spans
WHERE org_id IN {orgs:Array(String)} AND started_at >= times.1 AND started_at <= times.2
  AND trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)})))
  AND event_key IN (SELECT reinterpretAsUInt64(reverse(unhex(arrayJoin({events:Array(String)})))))
