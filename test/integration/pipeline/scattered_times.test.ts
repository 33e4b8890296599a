// Events that began in more weeks than the store's default limit of partitions per insert. Their
// texts become searchable and do not delay the texts of other organizations.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { logged, startTestPipeline, type TestPipeline } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 90_000 });

/** More than 1,000, the embedded store's default limit of partitions per insert. */
const WEEKS = 1200;
const WEEK_MS = 7 * 86_400_000;

let pipeline: TestPipeline;
let database: TestPipeline['database'];
let log: TestPipeline['log'];

beforeAll(async () => {
  pipeline = await startTestPipeline();
  ({ database, log } = pipeline);
});
afterAll(() => pipeline.close());

const event = (org_id: string, name: string, started_at: string) =>
  logged(
    'custom',
    { name, duration_ms: 1, outcome: 'success', trace_id: name, started_at, attributes: { input: `said ${name}` } },
    { org_id },
  );

it('events of twenty years land and become searchable, and delay no others', async () => {
  const scattered = Array.from({ length: WEEKS }, (_, index) =>
    event('org_old', `w${index}`, new Date(Date.now() - index * WEEK_MS).toISOString()),
  );
  await log.publish([...scattered, event('org_new', 'today', new Date().toISOString())], () => 1);
  await eventually(async () => (await database.run('SELECT count() FROM spans')).trim() === String(WEEKS + 1), {
    withinMs: 60_000,
  });
  await eventually(async () => (await database.run('SELECT count() FROM span_texts')).trim() === String(WEEKS + 1), {
    withinMs: 60_000,
  });
  expect(
    (
      await database.run("SELECT count() FROM span_texts WHERE org_id = 'org_new' AND hasToken(prompt, 'today')")
    ).trim(),
  ).toBe('1');
});
