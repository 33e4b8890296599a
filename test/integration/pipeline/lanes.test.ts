// The rows of an organization that sends much land beside those of others: while its landing stands still,
// others are readable, no checkpoint passes its events, and a worker that takes over lands them once.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { type HoldingProxy, startHoldingProxy } from '../../support/holding_proxy.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { logged, openTestLog, startWorker, type TestLog, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const PARTITION = 1;
const NOISY = 'org_noisy';
const QUIET = 'org_quiet';
const NOISY_EVENTS = 100;
const NOISY_TEXT = 'word '.repeat(400);

let database: TestDatabase;
let nats: TestNats;
let log: TestLog;
let proxy: HoldingProxy;
let worker: TestWorker;

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  log = await openTestLog(nats.url);
  proxy = await startHoldingProxy(database.url);
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: proxy.url });
  await worker.ready;
});
afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await log.close();
  await proxy.close();
  await nats.remove();
  await database.drop();
});

const publish = (org_id: string, names: readonly string[], text = 'a short text'): Promise<void> =>
  log.publish(
    names.map((name) =>
      logged(
        'custom',
        { name, duration_ms: 1, outcome: 'success', trace_id: `trc_${org_id}`, attributes: { input: text } },
        { org_id },
      ),
    ),
    () => PARTITION,
  );
const numberOf = async (sql: string): Promise<number> => Number(await database.run(sql));
const spansOf = (org_id: string): Promise<number> =>
  numberOf(`SELECT count() FROM spans WHERE org_id = '${org_id}' FORMAT TSV`);
const eventsOf = (org_id: string): Promise<number> =>
  numberOf(`SELECT sum(events) FROM usage_events WHERE org_id = '${org_id}' FORMAT TSV`);
const checkpoint = async (): Promise<number> => {
  const entry = await (await log.log.bucket('partitions')).get(`partition.${PARTITION}`);
  return entry?.json<{ checkpoint: number }>().checkpoint ?? 0;
};
const names = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${prefix} ${at}`);

it('lands what others send while the landing of a noisy organization stands still, and each row once after a crash', async () => {
  await publish(QUIET, ['first']);
  await eventually(async () => (await spansOf(QUIET)) === 1);
  await eventually(async () => (await checkpoint()) === 1, { what: 'the checkpoint of the first event' });
  proxy.stall('INSERT INTO spans ', NOISY);
  // Events of both organizations are in the partition, the quiet one's last.
  await publish(QUIET, ['second']);
  await publish(NOISY, names('noise', NOISY_EVENTS), NOISY_TEXT);
  await publish(QUIET, ['third']);
  await eventually(() => proxy.stalled > 0);
  await eventually(async () => (await spansOf(QUIET)) === 3);
  await publish(QUIET, ['fourth']);
  await eventually(async () => (await spansOf(QUIET)) === 4);
  await eventually(async () => (await eventsOf(NOISY)) === NOISY_EVENTS);
  expect(await spansOf(NOISY)).toBe(0);
  expect(await checkpoint()).toBeLessThan(3);

  worker.kill('SIGKILL');
  await worker.exited;
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
  await worker.ready;
  await publish(QUIET, ['fifth']);
  await eventually(async () => (await spansOf(QUIET)) === 5);
  await eventually(async () => (await checkpoint()) === 6);
  expect([await spansOf(NOISY), await eventsOf(NOISY)]).toEqual([NOISY_EVENTS, NOISY_EVENTS]);
  expect([await spansOf(QUIET), await eventsOf(QUIET)]).toEqual([5, 5]);
  const traces = await database.run(
    'SELECT org_id, sum(sign), sum(sign * toInt64(spans)) FROM traces GROUP BY org_id ORDER BY org_id FORMAT TSV',
  );
  expect(traces.trim().split('\n')).toEqual([`${NOISY}\t1\t${NOISY_EVENTS}`, `${QUIET}\t1\t5`]);
});
