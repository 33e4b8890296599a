-- Conditions on fields of the JSON text in the column `attributes`, one for each element of the list
-- of attributeConditions (sql/attribute_path.ts). Each path is tried in every form that it may have
-- in the text: as one key with dots, or nested. `needles` skips texts that do not contain the key.
/*each attributes with AND*/{attributes_negated:Bool} != (multiSearchAny(attributes, {attributes_needles:Array(String)}) AND arrayExists(
  text -> ifNull(multiIf(
    {attributes_op:String} = 'exists', true,
    {attributes_op:String} = 'in', has({attributes_texts:Array(String)}, text) OR has({attributes_numbers:Array(Float64)}, toFloat64OrNull(text)),
    {attributes_op:String} = 'number', has({attributes_signs:Array(Int8)}, (toFloat64OrNull(text) > {attributes_number:Float64}) - (toFloat64OrNull(text) < {attributes_number:Float64})),
    has({attributes_signs:Array(Int8)}, (text > {attributes_text:String}) - (text < {attributes_text:String}))
  ), false),
  arrayMap(
    raw -> if(startsWith(raw, '"'), JSONExtractString(raw), raw),
    arrayFilter(
      raw -> raw NOT IN ('', 'null'),
      arrayMap(keys -> arrayFold((json, key) -> JSONExtractRaw(json, key), keys, attributes), {attributes_keys:Array(Array(String))})
    )
  )
))/*end*/
