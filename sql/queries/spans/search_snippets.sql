-- Spans of documents with their texts. Texts are whole up to a number of bytes in all, in the order in
-- which the documents are asked; of the others only the beginnings are returned.
SELECT toString(doc) AS doc, span_id, trace_id, name, flags, model, outcome, cost_usd, started_at, started_ms, log_seq, log_index, log_sub,
  if(bytes_before <= {bytes:UInt32}, prompt, leftUTF8(prompt, {chars:UInt32})) AS prompt,
  if(bytes_before <= {bytes:UInt32}, response, leftUTF8(response, {chars:UInt32})) AS response
FROM (
  SELECT *, sum(length(prompt) + length(response)) OVER (ORDER BY indexOf({docs:Array(UInt64)}, doc) ROWS UNBOUNDED PRECEDING) AS bytes_before
  FROM (
    SELECT doc, span_id, trace_id, name, flags, model, outcome, cost_usd, started_at, toUnixTimestamp64Milli(started_at) AS started_ms, log_seq, log_index, log_sub, prompt, response
    FROM span_texts
    WHERE /*include spans/documents.sql*/
  )
)
SETTINGS /*include settings/threads.sql*/
