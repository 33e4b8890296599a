-- Number of incidents of a list.
SELECT count() AS total FROM (/*include incidents/shown.sql*/) WHERE /*include incidents/filters.sql*/
