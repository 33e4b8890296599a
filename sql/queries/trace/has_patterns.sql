-- Texts that have all the words and phrases, in the prompt or in the response. A text that does not
-- even have the characters of a word is not matched with its pattern.
/*each patterns with AND*/(
  (positionCaseInsensitiveUTF8(prompt, {patterns_word:String}) > 0 AND match(prompt, {patterns_pattern:String}))
  OR (positionCaseInsensitiveUTF8(response, {patterns_word:String}) > 0 AND match(response, {patterns_pattern:String}))
)/*end*/
