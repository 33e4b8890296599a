// Two organizations send identical events into the same partition of the log. Each has its own
// rows, also after both send the events again to a new partition owner that knows the earlier
// events only from the store.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { logged, startTestPipeline, type TestPipeline } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const EVENTS = 500;
const ORGS = ['org_a', 'org_b', 'örg c'];
const PARTITION = 2;

let pipeline: TestPipeline;
let database: TestPipeline['database'];
let log: TestPipeline['log'];

beforeAll(async () => {
  pipeline = await startTestPipeline();
  ({ database, log } = pipeline);
});
afterAll(() => pipeline.close());

const publish = (names: readonly string[]): Promise<void> =>
  log.publish(
    ORGS.flatMap((org_id) =>
      names.map((name) =>
        logged('custom', { name, duration_ms: 1, outcome: 'success', trace_id: 'shared' }, { org_id }),
      ),
    ),
    () => PARTITION,
  );
const counts = async (): Promise<Record<string, number>> => {
  const text = await database.run(
    'SELECT org_id, count() FROM spans GROUP BY org_id ORDER BY org_id FORMAT JSONCompactEachRow',
  );
  return Object.fromEntries(
    text
      .trim()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as [string, string])
      .map(([org_id, rows]) => [org_id, Number(rows)]),
  );
};
const each = (rows: number): Record<string, number> => Object.fromEntries(ORGS.map((org_id) => [org_id, rows]));

it('two organizations that send the same event each have their own, once', async () => {
  const names = Array.from({ length: EVENTS }, (_, i) => `step ${i}`);
  await publish(names);
  await eventually(async () => (await counts())['org_a'] === EVENTS, { withinMs: 30_000 });
  expect(await counts()).toEqual(each(EVENTS));
  await eventually(async () => {
    const entry = await (await log.log.bucket('partitions')).get(`partition.${PARTITION}`);
    return (entry?.json<{ checkpoint: number }>().checkpoint ?? 0) > 0;
  });
  await pipeline.replaceWorker();
  // Sends all events again and one new event. When the new event has landed, the pipeline has
  // processed all events before it.
  await publish([...names, 'the last']);
  await eventually(async () => (await counts())['örg c'] === EVENTS + 1, { withinMs: 60_000 });
  expect(await counts()).toEqual(each(EVENTS + 1));
});
