-- Beginnings of the texts of one span, and the lengths of the whole texts in characters. A text is
-- in one of the two tables; while the text mover runs, it may be in both.
-- The lengths name their table, since `prompt` alone would be the beginning that is selected before.
SELECT substringUTF8(prompt, 1, {chars:UInt32}) AS prompt, substringUTF8(response, 1, {chars:UInt32}) AS response,
  toUInt32(lengthUTF8(span_texts.prompt)) AS prompt_chars, toUInt32(lengthUTF8(span_texts.response)) AS response_chars
FROM span_texts
WHERE /*include trace/span_place.sql*/
LIMIT 1
UNION ALL
SELECT substringUTF8(prompt, 1, {chars:UInt32}), substringUTF8(response, 1, {chars:UInt32}), toUInt32(lengthUTF8(prompt)), toUInt32(lengthUTF8(response))
FROM span_texts_recent
WHERE /*include trace/span_place.sql*/
LIMIT 1
