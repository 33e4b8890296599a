-- Spans of documents, with their whole texts.
SELECT toString(doc) AS doc, span_id, trace_id, name, flags, prompt, response, model, toUnixTimestamp64Milli(started_at) AS started_ms, log_seq, log_index, log_sub
FROM span_texts
WHERE /*include spans/documents.sql*/
SETTINGS /*include settings/threads.sql*/
