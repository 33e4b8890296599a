-- How many incidents a list has.
SELECT count() AS total FROM (/*include incidents/shown.sql*/) WHERE /*include incidents/filters.sql*/
