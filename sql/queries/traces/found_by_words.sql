-- Traces, each once, with a text that has all the words, up to a number.
SELECT worded_key AS trace_key FROM (/*include traces/spans_worded.sql*/) LIMIT {rows:UInt32}
