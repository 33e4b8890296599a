-- Rows of one trace, as trace.sql returns them, and the times between which its spans started, from
-- trace_lookup: none for a trace of another organization, and while the row of a trace has not landed.
WITH (
  SELECT (min(first_at), max(last_at)) FROM trace_lookup WHERE trace_key = sipHash64({trace_id:String}) AND org_id = {org_id:String}
) AS bounds
SELECT /*include traces/columns.sql*/, sampled, toUnixTimestamp64Milli(bounds.1) AS from_ms, toUnixTimestamp64Milli(bounds.2) AS to_ms
FROM traces
WHERE org_id = {org_id:String} AND anchor >= bounds.1 AND anchor <= bounds.2
  AND trace_key = sipHash64({trace_id:String}) AND trace_id = {trace_id:String}
ORDER BY version DESC
SETTINGS /*include settings/cached.sql*/
