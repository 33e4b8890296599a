-- Columns that analytics filters and groups by, so that no read parses attributes. Every column has a default: a process of the
-- version before lands spans without them, and rows that landed earlier keep the defaults. flags = 0 marks those rows: readers
-- then take the same facts from sampled, price_source and attributes. The bits are declared in pipeline/domain/traces/span_flags.ts.
ALTER TABLE spans
  ADD COLUMN IF NOT EXISTS provider LowCardinality(String) DEFAULT '' COMMENT 'Vendor that answered a model call; empty where unknown' AFTER model,
  ADD COLUMN IF NOT EXISTS environment LowCardinality(String) DEFAULT '' COMMENT 'Deployment environment, empty for none' AFTER realm,
  ADD COLUMN IF NOT EXISTS service LowCardinality(String) DEFAULT '' COMMENT 'Service that sent the span, empty for none' AFTER environment,
  ADD COLUMN IF NOT EXISTS release LowCardinality(String) DEFAULT '' COMMENT 'Version of the service, empty for none' AFTER service,
  ADD COLUMN IF NOT EXISTS prompt_name LowCardinality(String) DEFAULT '' COMMENT 'Registered prompt that the call used, empty for none' AFTER release,
  ADD COLUMN IF NOT EXISTS prompt_version LowCardinality(String) DEFAULT '' COMMENT 'Version of that prompt, empty for none' AFTER prompt_name,
  ADD COLUMN IF NOT EXISTS first_token_ms UInt32 DEFAULT 0 COMMENT 'Milliseconds from the start to the first token; 0 where unknown' CODEC(T64, ZSTD(1)) AFTER cached_input_tokens,
  ADD COLUMN IF NOT EXISTS cache_write_tokens UInt32 DEFAULT 0 COMMENT 'Tokens of input_tokens that the provider wrote to its cache' CODEC(T64, ZSTD(1)) AFTER first_token_ms,
  ADD COLUMN IF NOT EXISTS reasoning_tokens UInt32 DEFAULT 0 COMMENT 'Tokens of output_tokens that the model spent on reasoning' CODEC(T64, ZSTD(1)) AFTER cache_write_tokens,
  ADD COLUMN IF NOT EXISTS flags UInt16 DEFAULT 0 COMMENT 'Bits of span_flags.ts; 0 for rows that landed before the column existed' CODEC(ZSTD(1)) AFTER sampled;
