-- Prompts and responses of documents.
SELECT doc, trace_key, prompt, response
FROM span_texts
WHERE /*include spans/documents.sql*/
