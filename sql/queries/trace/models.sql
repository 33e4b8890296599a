-- Models that the spans of a trace called, and when its newest span arrived.
SELECT arraySort(groupUniqArrayIf(toString(model), model != '')) AS models, toUnixTimestamp64Milli(max(received_at)) AS received_ms,
  countIf(parent_span_id = '') AS roots, count() AS spans
FROM spans
WHERE /*include traces/one.sql*/
