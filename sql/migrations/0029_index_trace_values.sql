-- Filters by these lists read the index alone, and not the lists. Rows that landed before the lists existed need no index.
ALTER TABLE traces
  ADD INDEX IF NOT EXISTS ix_models models TYPE text(tokenizer = 'array'),
  ADD INDEX IF NOT EXISTS ix_source_formats source_formats TYPE text(tokenizer = 'array'),
  ADD INDEX IF NOT EXISTS ix_departments departments TYPE text(tokenizer = 'array'),
  ADD INDEX IF NOT EXISTS ix_realms realms TYPE text(tokenizer = 'array'),
  ADD INDEX IF NOT EXISTS ix_prompts prompts TYPE text(tokenizer = 'array');
