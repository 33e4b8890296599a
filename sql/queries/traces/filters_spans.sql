-- Filters of traces by their spans, whose values the lists of a described trace hold. For the other
-- traces each filter is a read of spans of its own, so different spans of a trace may match
-- different filters. These reads are left out when the asked time has no such trace: the engine
-- makes the set of a subquery even if no row needs it.
/*if model*/AND (hasAny(models, {model:Array(String)}) /*if undescribed*/OR NOT described AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_undescribed.sql*/ AND model IN {model:Array(String)})/*end*/)/*end*/
/*if not_model*/AND NOT (hasAny(models, {not_model:Array(String)}) /*if undescribed*/OR NOT described AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_undescribed.sql*/ AND model IN {not_model:Array(String)})/*end*/)/*end*/
/*if source_format*/AND (hasAny(source_formats, {source_format:Array(String)}) /*if undescribed*/OR NOT described AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_undescribed.sql*/ AND source_format IN {source_format:Array(String)})/*end*/)/*end*/
/*if not_source_format*/AND NOT (hasAny(source_formats, {not_source_format:Array(String)}) /*if undescribed*/OR NOT described AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_undescribed.sql*/ AND source_format IN {not_source_format:Array(String)})/*end*/)/*end*/
/*if department*/AND (hasAny(departments, {department:Array(String)}) /*if undescribed*/OR NOT described AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_undescribed.sql*/ AND department IN {department:Array(String)})/*end*/)/*end*/
/*if not_department*/AND NOT (hasAny(departments, {not_department:Array(String)}) /*if undescribed*/OR NOT described AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_undescribed.sql*/ AND department IN {not_department:Array(String)})/*end*/)/*end*/
/*if realm*/AND (hasAny(realms, {realm:Array(String)}) /*if undescribed*/OR NOT described AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_undescribed.sql*/ AND realm IN {realm:Array(String)})/*end*/)/*end*/
/*if not_realm*/AND NOT (hasAny(realms, {not_realm:Array(String)}) /*if undescribed*/OR NOT described AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_undescribed.sql*/ AND realm IN {not_realm:Array(String)})/*end*/)/*end*/
/*if prompted*/AND (
  /*if prompt_labels*/hasAny(prompts, {prompt_labels:Array(String)})/*end*/
  /*if any_prompt*/arrayExists(label -> splitByChar('\n', toString(label))[2] IN {prompt_version:Array(String)} AND position(label, '\n') > 0, prompts)/*end*/
  /*if undescribed*/OR NOT described AND trace_key IN (
    SELECT trace_key FROM spans
    WHERE /*include traces/spans_undescribed.sql*/
      /*if prompt_name*/AND prompt_name IN {prompt_name:Array(String)}/*end*/ /*if prompt_version*/AND prompt_name != '' AND prompt_version IN {prompt_version:Array(String)}/*end*/
  )/*end*/
)/*end*/
/*if not_prompt_name*/AND NOT (hasAny(prompts, {not_prompt_name:Array(String)}) /*if undescribed*/OR NOT described AND trace_key IN (SELECT trace_key FROM spans WHERE /*include traces/spans_undescribed.sql*/ AND prompt_name IN {not_prompt_name:Array(String)})/*end*/)/*end*/
/*if attributed*/AND trace_key IN (/*include traces/spans_attributed.sql*/)/*end*/
