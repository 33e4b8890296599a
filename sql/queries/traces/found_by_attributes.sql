-- Traces, each once, with a span that has all the attributes, up to a number.
SELECT DISTINCT trace_key FROM (/*include traces/spans_attributed.sql*/) LIMIT {rows:UInt32}
SETTINGS /*include settings/threads.sql*/, /*include settings/short_tasks.sql*/
