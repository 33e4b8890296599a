-- Filters of traces by their spans. Each is a read of its own, so different spans of a trace may
-- match different filters.
/*if model*/AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND model IN {model:Array(String)})/*end*/
/*if source_format*/AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND source_format IN {source_format:Array(String)})/*end*/
/*if department*/AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND department IN {department:Array(String)})/*end*/
/*if realm*/AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND realm IN {realm:Array(String)})/*end*/
/*if not_model*/AND trace_key NOT IN (SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND model IN {not_model:Array(String)})/*end*/
/*if not_source_format*/AND trace_key NOT IN (SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND source_format IN {not_source_format:Array(String)})/*end*/
/*if not_department*/AND trace_key NOT IN (SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND department IN {not_department:Array(String)})/*end*/
/*if not_realm*/AND trace_key NOT IN (SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND realm IN {not_realm:Array(String)})/*end*/
/*if prompted*/AND trace_key IN (
  SELECT trace_key FROM spans
  WHERE /*include traces/spans_within.sql*/
    /*if prompt_name*/AND prompt_name IN {prompt_name:Array(String)}/*end*/ /*if prompt_version*/AND prompt_name != '' AND prompt_version IN {prompt_version:Array(String)}/*end*/
)/*end*/
/*if not_prompt_name*/AND trace_key NOT IN (SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND prompt_name IN {not_prompt_name:Array(String)})/*end*/
/*if attributed*/AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_within.sql*/ AND /*include attributes/conditions.sql*/)/*end*/
