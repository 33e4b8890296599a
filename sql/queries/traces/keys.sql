-- Rows of a list of traces: keys and signs. The rows of a pair cancel out.
SELECT trace_key, sign
FROM traces
WHERE /*include traces/filters.sql*/
SETTINGS use_uncompressed_cache = 1
FORMAT RowBinary
