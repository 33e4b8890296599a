-- Number of traces that only their spans describe.
SELECT sum(sign) AS traces FROM traces WHERE /*include traces/filters.sql*/ AND NOT described
SETTINGS /*include settings/cached.sql*/
