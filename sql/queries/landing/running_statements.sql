-- Ids of the statements that run now in this database and match a pattern.
SELECT query_id
FROM system.processes
WHERE query_id LIKE {pattern:String} AND current_database = currentDatabase()
