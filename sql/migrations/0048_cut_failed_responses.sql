-- Incidents show the beginning of the response of a failed span. A read decompressed the responses of nearly every granule of the last
-- seconds for it, which took more than all its other statements together. This column is empty for other spans, so it takes almost no
-- space. The pipeline lands it with the response; texts that landed before, or come from cold storage, get it from the expression, which
-- the engine evaluates when it reads or inserts them. 2000 is ERROR_CHARS_MAX in pipeline/domain/incidents/error_text.ts.
ALTER TABLE span_texts_recent ADD COLUMN IF NOT EXISTS error_text String DEFAULT if(outcome = 'success', '', substringUTF8(trimBoth(response), 1, 2000))
  COMMENT 'Beginning of the response of a failed span; empty otherwise' CODEC(LZ4) AFTER response;
ALTER TABLE span_texts ADD COLUMN IF NOT EXISTS error_text String DEFAULT if(outcome = 'success', '', substringUTF8(trimBoth(response), 1, 2000))
  COMMENT 'Beginning of the response of a failed span; empty otherwise' CODEC(ZSTD(1)) AFTER response;
