-- Condition for documents that may be among those of the bitmap `found`; they are, unless it has
-- `many`. Few are looked up by the key of the projection p_docs, up to 500,000 in a set (a set of more
-- than 10,000 leaves out no granule by its key). A set of more would take 50 bytes for each document,
-- those of other organizations included, so the includer asks the bitmap for each document that
-- remains; not in WHERE, where the engine copies the bitmap for each part.
doc BETWEEN bitmapMin(found) AND bitmapMax(found)
AND (many OR doc IN (SELECT arrayJoin(bitmapToArray(bitmapSubsetLimit(found, 0, 500000)))))
