-- A search shows the name of a span beside its text, and leaves out the spans of others' messages. Reading both from spans took longer
-- than the texts themselves, because its granules are 64 times as large. Texts that landed before, or come from cold storage, have
-- neither; for them, searches still ask spans.
ALTER TABLE span_texts_recent
  ADD COLUMN IF NOT EXISTS name LowCardinality(String) COMMENT 'Name of the span; empty if flags is 0' AFTER event_key,
  ADD COLUMN IF NOT EXISTS flags UInt16 COMMENT 'Bits of spans.flags when the text landed; 0 if they are not known' CODEC(LZ4) AFTER cost_usd;
ALTER TABLE span_texts
  ADD COLUMN IF NOT EXISTS name LowCardinality(String) COMMENT 'Name of the span; empty if flags is 0' AFTER event_key,
  ADD COLUMN IF NOT EXISTS flags UInt16 COMMENT 'Bits of spans.flags when the text landed; 0 if they are not known' CODEC(ZSTD(1)) AFTER cost_usd;
