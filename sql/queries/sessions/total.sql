-- Number of sessions or end users of an organization.
SELECT count() AS total FROM (/*include sessions/groups.sql*/)
