-- Values of a trace's spans that lists filter and facets count by, so that neither reads spans. Every column has a default: a process
-- of the version before lands traces without them, and rows that landed earlier keep the defaults. described = false marks those rows,
-- and the rows of traces with more values than a list may hold: readers then take the same values from the spans.
ALTER TABLE traces
  ADD COLUMN IF NOT EXISTS described Bool DEFAULT false COMMENT 'True where the lists of models, source formats, departments, realms and prompts hold the values of all spans' AFTER forced_from,
  ADD COLUMN IF NOT EXISTS models Array(LowCardinality(String)) DEFAULT [] COMMENT 'Models of the spans' AFTER described,
  ADD COLUMN IF NOT EXISTS source_formats Array(LowCardinality(String)) DEFAULT [] COMMENT 'Formats in which the spans arrived' AFTER models,
  ADD COLUMN IF NOT EXISTS departments Array(LowCardinality(String)) DEFAULT [] COMMENT 'Departments of the spans' AFTER source_formats,
  ADD COLUMN IF NOT EXISTS realms Array(LowCardinality(String)) DEFAULT [] COMMENT 'Realms of the spans' AFTER departments,
  ADD COLUMN IF NOT EXISTS prompts Array(LowCardinality(String)) DEFAULT [] COMMENT 'Registered prompts that calls used, and each with its version after a line break' AFTER realms;
-- Finds the few granules with traces that their spans must describe, where all others are described.
ALTER TABLE traces ADD INDEX IF NOT EXISTS ix_described described TYPE minmax GRANULARITY 1;
