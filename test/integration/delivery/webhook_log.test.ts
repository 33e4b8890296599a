// The log of attempts: deliveries continue while ClickHouse is down; the rows wait and are written
// when it is back.
import { connect, createServer, type Server } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { freePort } from '../../../ops/launch/process/ports.ts';
import { type DeliveryRow, WebhookLog } from '../../../pipeline/delivery/webhook_log.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { type Receiver, startReceiver, status } from '../../support/receiver.ts';
import { eventually } from '../../support/wait.ts';
import { publishEvents, putEndpoint, startTestWebhooks } from '../../support/webhooks.ts';

let nats: TestNats;
let database: TestDatabase;
let receiver: Receiver;

beforeAll(async () => {
  nats = await startTestNats();
  receiver = await startReceiver();
  database = await createTestDatabase();
});
afterAll(async () => {
  await receiver.close();
  await nats.remove();
  await database.drop();
});

/** Exposes ClickHouse on another port, which accepts no connection until open(). */
async function gateTo(address: string): Promise<{ url: string; open(): Promise<void>; close(): void }> {
  const port = await freePort();
  const url = new URL(address);
  const target = { host: url.hostname, port: Number(url.port) };
  url.port = String(port);
  const server: Server = createServer((socket) => {
    const onward = connect(target);
    socket.on('error', () => onward.destroy()).pipe(onward);
    onward.on('error', () => socket.destroy()).pipe(socket);
  });
  return {
    url: url.href,
    open: () => new Promise((resolve) => server.listen(port, '127.0.0.1', resolve)),
    close: () => server.close(),
  };
}

const count = async (org: string): Promise<string> =>
  (
    await database.run(
      `SELECT outcome, count() FROM webhook_deliveries WHERE org_id = '${org}' GROUP BY outcome ORDER BY outcome FORMAT TSV`,
    )
  ).trim();

it('deliveries continue while ClickHouse is away, and their log rows land when it is back', async () => {
  const gate = await gateTo(database.url);
  const worker = await startTestWebhooks(nats.url, { clickhouseUrl: gate.url });
  receiver.behave('/hook', (res, got) => {
    status(got.attempt === 0 ? 500 : 200)(res, got);
  });
  await putEndpoint(worker.log, { org_id: 'org_away', url: `${receiver.url}/hook` });
  await publishEvents(worker.log, 30, { org_id: 'org_away' });
  await eventually(() => receiver.at('/hook').length === 60);
  expect(await count('org_away')).toBe('');
  await gate.open();
  await eventually(async () => (await count('org_away')) === 'delivered\t30\nretrying\t30');
  await worker.stop();
  gate.close();
});

const row = (event_id: string): DeliveryRow => ({
  org_id: 'org_bound',
  target_id: 'wh_1',
  event_id,
  event: 'trace.completed',
  attempt: 0,
  outcome: 'delivered',
  status_code: 200,
  error: '',
  duration_ms: 3,
  at: Date.now(),
});

it('waiting log rows are bounded: the oldest are dropped and counted, also those of a write in progress', async () => {
  const client = createClickHouse({ url: database.url });
  const logger = createLogger('test', 'silent');
  let dropped = 0;
  const [begun, release] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
  const clickhouse = {
    execute: async (statement: Parameters<typeof client.execute>[0]) => {
      begun.resolve(undefined);
      await release.promise;
      return client.execute(statement);
    },
  };
  const log = new WebhookLog({ clickhouse, logger, flushMs: 1, rowsMax: 100, onDropped: (rows) => (dropped += rows) });
  for (let at = 0; at < 60; at += 1) log.add(row(`evt_${at}`));
  await begun.promise;
  for (let at = 60; at < 150; at += 1) log.add(row(`evt_${at}`));
  expect([log.size, dropped]).toEqual([100, 50]);
  release.resolve(undefined);
  await eventually(() => log.size === 0);
  await log.stop();
  // The 50 dropped rows were part of the write in progress by then, so they were written too.
  expect(await count('org_bound')).toBe('delivered\t150');
  await client.close();
});

it('a shutdown writes the remaining log rows', async () => {
  const client = createClickHouse({ url: database.url });
  const log = new WebhookLog({
    clickhouse: client,
    logger: createLogger('test', 'silent'),
    flushMs: 60_000,
    onDropped: () => undefined,
  });
  for (let at = 0; at < 10; at += 1) log.add({ ...row(`evt_${at}`), org_id: 'org_stop' });
  await log.stop();
  expect(await count('org_stop')).toBe('delivered\t10');
  await client.close();
});
