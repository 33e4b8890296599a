-- First rows of a list that is expected to be short, newest first, with the number of its traces and of
-- its rows. Both stop at a number of rows, `whole_rows`: the number of traces is exact below it.
SELECT *, sum(sign) OVER () AS total, count() OVER () AS all_rows
FROM (
  SELECT /*include traces/columns.sql*/
  FROM traces
  WHERE /*include traces/filters.sql*/
  ORDER BY started_at DESC, trace_key DESC, version DESC
  LIMIT {whole_rows:UInt32}
)
ORDER BY started_at DESC, trace_key DESC, version DESC
LIMIT {rows:UInt32}
SETTINGS /*include settings/cached.sql*/, /*include settings/threads.sql*/ /*if attributed*/, /*include settings/short_tasks.sql*//*end*/ /*if user_id*/, /*include settings/by_user.sql*//*end*/
