-- Texts that have each phrase: its words follow one another in the words of the text. The index finds
-- the texts with the words, so that few are read.
/*each phrases with AND*/(
  hasAllTokens(words, {phrases_words:Array(String)})
  AND position(concat(' ', words, ' '), {phrases_phrase:String}) > 0
)/*end*/
