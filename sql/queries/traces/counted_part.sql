-- Condition for the granules with traces of some slices of the time. The engine leaves out the other granules by the key
-- and looks at no row, so rows beside a slice are counted too.
/*if slices*/AND indexHint(/*each slices with OR*/anchor >= fromUnixTimestamp64Milli({slices_from_ms:Int64}, 'UTC') AND anchor < fromUnixTimestamp64Milli({slices_to_ms:Int64}, 'UTC')/*end*/)/*end*/
