-- Number of traces without tags. They are counted apart, because an array join that keeps them
-- unpacks the dictionary of the tags, which costs ten times as much.
SELECT sum(sign) AS traces FROM traces WHERE /*include traces/filters.sql*/ AND empty(tags)
SETTINGS /*include settings/lists.sql*/
