-- Log records that hold messages of spans of the given traces. Bit 11 of the flags is message_record.
/*include span_messages/range.sql*/ AND sampled AND bitTest(flags, 11)
/*if span_ids*/AND parent_span_id IN {span_ids:Array(String)}/*end*/
