-- How many sessions or end users of an org there are.
SELECT count() AS total FROM (/*include sessions/groups.sql*/)
