// Late events of very many traces in one batch, on the real engine: a new partition owner knows
// none of the traces and looks all of them up.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { logged, startTestPipeline, type TestPipeline } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 });

/**
 * More complete traces than a partition remembers. Their ids exceed what the server accepts in one
 * parameter.
 */
const TRACES = 6000;
const PARTITION = 1;

let pipeline: TestPipeline;
let database: TestPipeline['database'];
let log: TestPipeline['log'];

beforeAll(async () => {
  pipeline = await startTestPipeline({ SERVICE_TRACE_GRACE_MS: '200', SERVICE_TRACE_IDLE_MS: '200' });
  ({ database, log } = pipeline);
});
afterAll(() => pipeline.close());

const publish = (step: string): Promise<void> =>
  log.publish(
    Array.from({ length: TRACES }, (_, i) =>
      logged('custom', {
        name: step,
        duration_ms: 1,
        outcome: 'success',
        trace_id: `trace-of-a-long-name-${String(i).padStart(8, '0')}`,
      }),
    ),
    () => PARTITION,
  );
const count = async (sql: string): Promise<number> => Number((await database.run(sql)).trim());
const landed = (spans: number) =>
  eventually(
    async () =>
      (await count('SELECT sum(events) FROM usage_events')) === spans &&
      (await count('SELECT sum(spans * sign) FROM traces')) === spans,
    {
      what: `${spans} events`,
      withinMs: 30_000,
    },
  );

it('late events are added to the existing rows', async () => {
  await publish('first');
  await landed(TRACES);
  await pipeline.replaceWorker();
  await eventually(
    async () => {
      const entry = await (await log.log.bucket('partitions')).get(`partition.${PARTITION}`);
      const { checkpoint, completed_through } = entry?.json<{ checkpoint: number; completed_through: number }>() ?? {};
      return checkpoint !== undefined && checkpoint > 0 && completed_through === checkpoint;
    },
    { what: 'every trace complete', withinMs: 30_000 },
  );
  // The worker remembers traces that it has just completed; its successor remembers none.
  await pipeline.replaceWorker();
  await publish('second');
  await landed(2 * TRACES);
  expect(await count('SELECT sum(sign) FROM traces')).toBe(TRACES);
  expect(await count('SELECT count() FROM analyst_traces WHERE spans != 2')).toBe(0);
});
