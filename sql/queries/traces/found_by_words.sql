-- Traces, each once, with a text that has all the words, up to a number.
SELECT DISTINCT trace_key FROM (/*include traces/spans_worded.sql*/) LIMIT {rows:UInt32}
