-- The number that a ranked list of traces is sorted by.
toFloat64(/*if by_duration*/duration_ms/*end*//*if by_cost*/cost_usd/*end*//*if by_tokens*/input_tokens + output_tokens/*end*/)
