-- Segments that may hold documents of an organization that started within a range of time. The
-- projection p_segments answers it.
SELECT bitShiftRight(doc, 16) AS segment
FROM span_texts
WHERE org_id = {org_id:String}
GROUP BY org_id, bitShiftRight(doc, 16)
HAVING min(started_at) <= fromUnixTimestamp64Milli({to_ms:Int64}, 'UTC') AND max(started_at) >= fromUnixTimestamp64Milli({from_ms:Int64}, 'UTC')
