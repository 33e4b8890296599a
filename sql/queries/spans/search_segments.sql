-- Segments that hold documents of an organization in a period, with what they hold of the
-- organization. The projection p_segments answers it. Segment 0 has the texts that cannot be searched
-- yet.
SELECT bitShiftRight(doc, 16) AS segment, countIf(dl > 0) AS documents, sum(dl) AS words, toString(sum(doc)) AS numbers,
  toString(min(doc)) AS first, toString(max(doc)) AS last,
  toUnixTimestamp64Milli(min(started_at)) AS from_ms, toUnixTimestamp64Milli(max(started_at)) AS to_ms
FROM span_texts
WHERE org_id = {org_id:String}
GROUP BY org_id, bitShiftRight(doc, 16)
HAVING words > 0
  /*if since_ms*/AND to_ms >= {since_ms:Int64}/*end*/
  /*if until_ms*/AND from_ms <= {until_ms:Int64}/*end*/
