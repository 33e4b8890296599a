-- Number of traces of a list. It is exact without FINAL, because the rows of a pair cancel out.
SELECT sum(sign) AS total FROM traces WHERE /*include traces/filters.sql*/
SETTINGS use_uncompressed_cache = 1
