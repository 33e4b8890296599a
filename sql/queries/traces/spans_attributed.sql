-- Traces of the spans that have all the attributes.
SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND /*include attributes/conditions.sql*/
