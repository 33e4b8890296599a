-- Ids of the running statements of this database that match a pattern.
SELECT query_id
FROM system.processes
WHERE query_id LIKE {pattern:String} AND current_database = currentDatabase()
