-- Weeks in which texts of parts are dropped, up to two: more make no difference.
SELECT DISTINCT toMonday(drop_on) AS week
FROM {table:Identifier}
WHERE _part IN {parts:Array(String)}
LIMIT 2
SETTINGS max_threads = 1
