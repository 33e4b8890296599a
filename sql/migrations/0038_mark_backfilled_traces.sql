-- Traces that began with an event of the past: they count as complete from their first event on, so that nothing fires for them,
-- also after a worker that held them was killed. A worker of the version before lands every trace without the mark.
ALTER TABLE traces ADD COLUMN IF NOT EXISTS backfilled Bool DEFAULT false COMMENT 'True for a trace that began with a backfilled event' AFTER prompts;
