-- Incidents show the error that the attributes of a failed span name, else the beginning of its response. A read decompressed attributes
-- and responses of nearly every granule of the last seconds for that, which took more than all its other statements together.
-- error_text is empty for spans that succeeded, so it takes almost no space. The pipeline lands it with the response; texts that landed
-- before, or come from cold storage, get it from the expression, which the engine evaluates when it reads or inserts them. 2000 is
-- ERROR_CHARS_MAX in pipeline/domain/incidents/error_text.ts.
-- error_named excludes spans whose attributes need not be read; those of spans that landed before must be.
ALTER TABLE span_texts_recent ADD COLUMN IF NOT EXISTS error_text String DEFAULT if(outcome = 'success', '', substringUTF8(trimBoth(response), 1, 2000))
  COMMENT 'Beginning of the response of a failed span; empty otherwise' CODEC(LZ4) AFTER response;
ALTER TABLE span_texts ADD COLUMN IF NOT EXISTS error_text String DEFAULT if(outcome = 'success', '', substringUTF8(trimBoth(response), 1, 2000))
  COMMENT 'Beginning of the response of a failed span; empty otherwise' CODEC(ZSTD(1)) AFTER response;
ALTER TABLE spans ADD COLUMN IF NOT EXISTS error_named Bool DEFAULT true
  COMMENT 'True for a failed span whose attributes have error or error_message, and for spans that landed before the column existed' CODEC(ZSTD(1)) AFTER attributes;
