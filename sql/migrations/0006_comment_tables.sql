-- What a reader of the tables has to know before a first query. Analysts read the analyst_* views instead.
ALTER TABLE spans MODIFY COMMENT 'One row a span, each landed exactly once. Prompt and response are in span_texts and span_texts_recent.';
ALTER TABLE spans
  COMMENT COLUMN event_key 'The 64 bits of the event id: evt_ and 16 hex digits',
  COMMENT COLUMN trace_key 'sipHash64(trace_id)',
  COMMENT COLUMN parent_span_id 'Empty for a root',
  COMMENT COLUMN attributes 'JSON text as it was sent',
  COMMENT COLUMN sampled 'False where sampling kept the numbers only',
  COMMENT COLUMN price_source 'given, org, package@version:provider/model, or missing',
  COMMENT COLUMN storage_bytes 'Bytes of the event, on its first span only',
  COMMENT COLUMN log_seq 'Place in the ingest log; with partition, log_index and log_sub it names the row';
ALTER TABLE span_texts MODIFY COMMENT 'Prompts and responses of spans, searchable.';
ALTER TABLE span_texts
  COMMENT COLUMN extra_words 'Words that the text index would part wrongly, for the index alone',
  COMMENT COLUMN dl 'Words in prompt and response',
  COMMENT COLUMN reps 'FNV-1a 32 of every occurrence of a word after its first',
  COMMENT COLUMN stop_reps 'The same for stop words',
  COMMENT COLUMN drop_on 'When the row is due, by the retention policy of the day it landed';
ALTER TABLE span_texts_recent MODIFY COMMENT 'Texts that landed in the last seconds, on their way to span_texts.';
ALTER TABLE traces MODIFY COMMENT 'One row a trace, kept right by pairs: sum(sign) counts traces; read it with FINAL or add up signs.';
ALTER TABLE traces
  COMMENT COLUMN anchor 'started_at as first seen; never changes',
  COMMENT COLUMN sign '1: a state of the trace, -1: takes that state back',
  COMMENT COLUMN version 'log_seq of the newest message that the row holds';
ALTER TABLE trace_lookup MODIFY COMMENT 'Which org has a trace, and when its spans started. Rows of one trace have to be merged: min and max.';
ALTER TABLE usage_events MODIFY COMMENT 'What was used for each landing, org, agent and hour of receipt, whatever sampling kept.';
ALTER TABLE landing_fences MODIFY COMMENT 'Which worker may land which partition of the log: the newest epoch.';
