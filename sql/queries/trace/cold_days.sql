-- Days of an organization whose texts are in an object of cold storage, and the day on which they
-- were dropped from the store.
SELECT toString(day) AS cold_day, toString(dropped_as_of) AS left_on
FROM cold_objects FINAL
WHERE org_id = {org_id:String} AND day IN {days:Array(Date)} AND state != 'deleted' AND object_key != ''
