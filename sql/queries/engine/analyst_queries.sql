-- Number of running queries of a user whose id contains a mark.
SELECT count() AS n
FROM system.processes
WHERE user = {user:String} AND position(query_id, {mark:String}) > 0
