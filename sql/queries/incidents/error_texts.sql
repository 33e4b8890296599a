-- Error text of the given traces by the outcome of their failing spans: that of the first span whose
-- attributes name an error (error_message, else error or its message), else the response of the
-- first span that has one. A text is in one of the two tables of texts; while the text mover runs,
-- it may be in both.
SELECT org_id, trace_key, outcome, argMinIf(error_text, (rank, started_at, log_seq, log_index, log_sub), error_text != '') AS text
FROM (
  SELECT
    org_id, trace_key, outcome, 1 AS rank, started_at, log_seq, log_index, log_sub,
    substringUTF8(
      multiIf(
        message != '', message,
        type = 'String', trimBoth(JSONExtractString(attributes, 'error')),
        type != 'Object', '',
        inner_message != '', inner_message,
        JSONExtractRaw(attributes, 'error')
      ),
      1, {chars:UInt32}
    ) AS error_text
  FROM (
    SELECT
      org_id, trace_key, outcome, started_at, log_seq, log_index, log_sub, attributes,
      trimBoth(JSONExtractString(attributes, 'error_message')) AS message,
      JSONType(attributes, 'error') AS type,
      trimBoth(JSONExtractString(attributes, 'error', 'message')) AS inner_message
    FROM spans
    WHERE /*include incidents/failed.sql*/ AND error_named
  )
  UNION ALL
  SELECT org_id, trace_key, outcome, 2 AS rank, started_at, log_seq, log_index, log_sub, error_text
  FROM span_texts
  WHERE /*include incidents/failed.sql*/ AND error_text != ''
  UNION ALL
  SELECT org_id, trace_key, outcome, 2 AS rank, started_at, log_seq, log_index, log_sub, error_text
  FROM span_texts_recent
  WHERE /*include incidents/failed.sql*/ AND error_text != ''
)
GROUP BY org_id, trace_key, outcome
HAVING text != ''
