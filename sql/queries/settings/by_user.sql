-- The engine reads no projection for a condition that the text index of a list answers. For lists of one user's
-- traces, whose projection has few rows to compare.
query_plan_direct_read_from_text_index = 0
