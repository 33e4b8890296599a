-- Conditions on fields of the JSON text in the column `attributes`, one for each element of the list
-- of attributeConditions (sql/attribute_path.ts). A path without dots is one key. Any other path is
-- tried in every form that it may have in the text: as one key with dots, or nested; this fold takes
-- half as long again. `needles` skips texts that do not contain the key, so both conditions must be
-- operands of one AND: the engine then evaluates the second one for the texts that are left.
/*every attributes with AND*//*if negated*/NOT /*end*/(multiSearchAny(attributes, {needles:Array(String)}) AND arrayExists(
  text -> /*if any_value*/true/*end*//*if texts*/has({texts:Array(String)}, text)/*end*//*if numbers*/ OR ifNull(has({numbers:Array(Float64)}, toFloat64OrNull(text)), false)/*end*//*if number*/ifNull(has({signs:Array(Int8)}, (toFloat64OrNull(text) > {number:Float64}) - (toFloat64OrNull(text) < {number:Float64})), false)/*end*//*if text*/has({signs:Array(Int8)}, (text > {text:String}) - (text < {text:String}))/*end*/,
  arrayMap(
    raw -> if(startsWith(raw, '"'), JSONExtractString(raw), raw),
    arrayFilter(
      raw -> raw NOT IN ('', 'null'),
      /*if key*/[JSONExtractRaw(attributes, {key:String})]/*end*/
      /*if keys*/arrayMap(keys -> arrayFold((json, key) -> JSONExtractRaw(json, key), keys, attributes), {keys:Array(Array(String))})/*end*/
    )
  )
))/*end*/
