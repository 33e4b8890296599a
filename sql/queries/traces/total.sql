-- How many traces a list has: exact without FINAL, as the rows of a pair cancel out.
SELECT sum(sign) AS total FROM traces WHERE /*include traces/filters.sql*/
