-- Active parts of a table with their numbers of rows.
SELECT name, rows
FROM system.parts
WHERE database = currentDatabase() AND table = {table:String} AND active
