-- Number of traces without tags. They are counted apart, because an array join that keeps them
-- unpacks the dictionary of the tags, which costs ten times as much. With slices,
-- only their traces are counted.
SELECT sum(sign) AS traces FROM traces WHERE /*include traces/filters.sql*/ AND empty(tags) /*include traces/counted_part.sql*/
SETTINGS /*include settings/cached.sql*/
