-- Text of the user and answer of the given spans, each up to a number of characters. A prompt that
-- is a list of messages says its last message of the user that has a text; any other prompt is the
-- text itself. A text is in one of two tables; while the text mover runs, it may be in both.
SELECT 'asked' AS part, log_seq, log_index, log_sub, leftUTF8(if(arrayExists(message -> JSONHas(message, 'role'), messages), arrayLast(text -> text != '', said), prompt), {chars_max:UInt32}) AS text
FROM (
  SELECT log_seq, log_index, log_sub, prompt, JSONExtractArrayRaw(prompt) AS messages,
    arrayMap(message -> if(JSONType(message, 'content') = 'String', JSONExtractString(message, 'content'),
      arrayStringConcat(arrayFilter(text -> text != '', arrayMap(part -> multiIf(
        JSONType(part) = 'String', JSONExtractString(part),
        JSONExtractString(part, 'type') NOT IN ('text', 'input_text'), '',
        JSONHas(part, 'text'), JSONExtractString(part, 'text'),
        JSONExtractString(part, 'content')), arrayConcat(JSONExtractArrayRaw(message, 'content'), JSONExtractArrayRaw(message, 'parts')))), '\n')),
      arrayFilter(message -> JSONExtractString(message, 'role') IN ('user', 'human'), messages)) AS said
  FROM (
    SELECT log_seq, log_index, log_sub, prompt
    FROM span_texts
    WHERE org_id = {org_id:String} AND started_at IN {asked_times:Array(DateTime64(3, 'UTC'))}
      AND (log_seq, log_index, log_sub) IN arrayZip({asked_seqs:Array(UInt64)}, {asked_indexes:Array(UInt32)}, {asked_subs:Array(UInt32)})
    UNION ALL
    SELECT log_seq, log_index, log_sub, prompt
    FROM span_texts_recent
    WHERE org_id = {org_id:String} AND started_at IN {asked_times:Array(DateTime64(3, 'UTC'))}
      AND (log_seq, log_index, log_sub) IN arrayZip({asked_seqs:Array(UInt64)}, {asked_indexes:Array(UInt32)}, {asked_subs:Array(UInt32)})
  )
)
UNION ALL
SELECT 'answered', log_seq, log_index, log_sub, leftUTF8(response, {chars_max:UInt32})
FROM span_texts
WHERE org_id = {org_id:String} AND started_at IN {answered_times:Array(DateTime64(3, 'UTC'))}
  AND (log_seq, log_index, log_sub) IN arrayZip({answered_seqs:Array(UInt64)}, {answered_indexes:Array(UInt32)}, {answered_subs:Array(UInt32)})
UNION ALL
SELECT 'answered', log_seq, log_index, log_sub, leftUTF8(response, {chars_max:UInt32})
FROM span_texts_recent
WHERE org_id = {org_id:String} AND started_at IN {answered_times:Array(DateTime64(3, 'UTC'))}
  AND (log_seq, log_index, log_sub) IN arrayZip({answered_seqs:Array(UInt64)}, {answered_indexes:Array(UInt32)}, {answered_subs:Array(UInt32)})
