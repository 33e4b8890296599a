-- Error text of the first failing span of each outcome that has one: attributes.error_message, else
-- attributes.error or its message.
SELECT org_id, trace_key, outcome, argMinIf(said, place, said != '') AS text
FROM (
  SELECT
    org_id,
    trace_key,
    outcome,
    (started_at, log_seq, log_index, log_sub) AS place,
    trimBoth(JSONExtractString(attributes, 'error_message')) AS named,
    JSONType(attributes, 'error') AS type,
    trimBoth(JSONExtractString(attributes, 'error', 'message')) AS inner_message,
    substringUTF8(
      multiIf(
        named != '', named,
        type = 'String', trimBoth(JSONExtractString(attributes, 'error')),
        type != 'Object', '',
        inner_message != '', inner_message,
        JSONExtractRaw(attributes, 'error')
      ),
      1, {chars:UInt32}
    ) AS said
  FROM spans
  WHERE /*include incidents/failed.sql*/
)
GROUP BY org_id, trace_key, outcome
HAVING text != ''
