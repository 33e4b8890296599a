// Late events of very many traces in one batch, on the real engine: a new owner knows none of them, and looks all of them up.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { logged, openTestLog, startWorker, type TestLog, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 });

/** More than a partition keeps of complete traces; their ids are more than the server takes in one parameter. */
const TRACES = 6000;
const PARTITION = 1;

let database: TestDatabase;
let nats: TestNats;
let log: TestLog;
let worker: TestWorker;

const startAWorker = async (): Promise<void> => {
  worker = startWorker({
    natsUrl: nats.url,
    clickhouseUrl: database.url,
    more: { SERVICE_TRACE_GRACE_MS: '200', SERVICE_TRACE_IDLE_MS: '200' },
  });
  await worker.ready;
};

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  log = await openTestLog(nats.url);
  await startAWorker();
});

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await log.close();
  await nats.remove();
  await database.drop();
});

const publish = (step: string): Promise<void> =>
  log.publish(
    Array.from({ length: TRACES }, (_, i) =>
      logged('custom', { name: step, duration_ms: 1, outcome: 'success', trace_id: `trace-of-a-long-name-${String(i).padStart(8, '0')}` }),
    ),
    () => PARTITION,
  );
const count = async (sql: string): Promise<number> => Number((await database.run(sql)).trim());
const landed = (spans: number) =>
  eventually(
    async () =>
      (await count('SELECT sum(events) FROM usage_events')) === spans && (await count('SELECT sum(spans * sign) FROM traces')) === spans,
    {
      what: `${String(spans)} events`,
      withinMs: 30_000,
    },
  );

it('adds them to the rows that there are', async () => {
  await publish('first');
  await landed(TRACES);
  worker.kill('SIGKILL');
  await worker.exited;
  await startAWorker();
  await eventually(
    async () => {
      const entry = await (await log.log.bucket('partitions')).get(`partition.${String(PARTITION)}`);
      const { checkpoint, completed_through } = entry?.json<{ checkpoint: number; completed_through: number }>() ?? {};
      return checkpoint !== undefined && checkpoint > 0 && completed_through === checkpoint;
    },
    { what: 'every trace complete', withinMs: 30_000 },
  );
  // What it has just completed itself it remembers; its successor remembers nothing.
  worker.kill('SIGKILL');
  await worker.exited;
  await startAWorker();
  await publish('second');
  await landed(2 * TRACES);
  expect(await count('SELECT sum(sign) FROM traces')).toBe(TRACES);
  expect(await count('SELECT count() FROM analyst_traces WHERE spans != 2')).toBe(0);
});
