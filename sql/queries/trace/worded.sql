-- Condition for the texts of one trace in span_texts that have all the words. The includer names their
-- documents `found`.
/*include traces/one.sql*/ AND doc IN (SELECT arrayJoin(bitmapToArray(found)))
