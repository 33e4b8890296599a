-- Leaves out granules without traces of the given slices of the time. indexHint is compared with the key only, never with
-- a row, so the other rows of a granule are counted too; the caller divides by the number of all counted traces.
/*if slices*/AND indexHint(/*each slices with OR*/anchor >= fromUnixTimestamp64Milli({slices_from_ms:Int64}, 'UTC') AND anchor < fromUnixTimestamp64Milli({slices_to_ms:Int64}, 'UTC')/*end*/)/*end*/
