-- Error text in the attributes of a span: error_message, else error or its message, else
-- status_message. Empty if there is none.
substringUTF8(
  multiIf(
    trimBoth(JSONExtractString(attributes, 'error_message')) != '', trimBoth(JSONExtractString(attributes, 'error_message')),
    trimBoth(JSONExtractString(attributes, 'error')) != '', trimBoth(JSONExtractString(attributes, 'error')),
    trimBoth(JSONExtractString(attributes, 'error', 'message')) != '', trimBoth(JSONExtractString(attributes, 'error', 'message')),
    JSONType(attributes, 'error') = 'Object', JSONExtractRaw(attributes, 'error'),
    trimBoth(JSONExtractString(attributes, 'status_message'))
  ),
  1, {chars:UInt32}
)
