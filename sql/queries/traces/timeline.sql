-- Spans of a trace by start, with only the fields that a timeline draws.
SELECT span_id, kind, name, model, outcome, toUnixTimestamp64Milli(started_at) AS started_ms, toUnixTimestamp64Milli(ended_at) AS ended_ms, count() OVER () AS total
FROM spans
WHERE /*include traces/one.sql*/
ORDER BY started_at, log_seq, log_index, log_sub
LIMIT {rows:UInt32}
SETTINGS /*include settings/cached.sql*/
