// Bounds of webhooks: the backlog of one receiver, the dead letters of one organization, the
// addresses that deliveries may connect to, and the key that decrypts the secrets.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { openSealer } from '../../../ops/platform/sealing.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import {
  EVENTS_SUBJECT,
  WEBHOOK_MESSAGE_BYTES_MAX,
  WEBHOOKS_STREAM,
  webhookSubject,
} from '../../../schemas/streams.ts';
import { DEAD_LETTERS_ORG_MAX, WebhookDeadLetters } from '../../../ops/exchange/webhook_queue.ts';
import { createDeadLetterStore } from '../../../pipeline/queues/dead_letters.ts';
import { BACKLOG, type BacklogBounds, WebhookBacklog } from '../../../pipeline/delivery/webhook_backlog.ts';
import { WebhookFanout } from '../../../pipeline/delivery/webhook_fanout.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { eventually } from '../../support/wait.ts';
import { FAST, openWebhookLog, publishEvents, putEndpoint, startTestWebhooks } from '../../support/webhooks.ts';

let nats: TestNats;
let receiver: Receiver;
let log: Log;
const logger = createLogger('test', 'silent');
const now = () => Date.now();

beforeAll(async () => {
  nats = await startTestNats();
  receiver = await startReceiver();
  log = await openWebhookLog(nats.url);
});
afterEach(() => log.jsm.streams.purge(WEBHOOKS_STREAM));
afterAll(async () => {
  await log.nc.close();
  await receiver.close();
  await nats.remove();
});

/** Starts a fan-out without a sender, so that the deliveries it stores stay in the queue. */
async function startFanout(
  subscribers: Readonly<Record<string, readonly string[]>>,
  bounds: Partial<BacklogBounds>,
  deadLetter: ReturnType<typeof createDeadLetterStore> = createDeadLetterStore(log, now),
) {
  const backlog = new WebhookBacklog(log, logger, { ...BACKLOG, ...bounds });
  await backlog.poll();
  const deadLetters = await WebhookDeadLetters.open(log);
  const targets = { any: true, subscribersOf: (org_id: string) => [...(subscribers[org_id] ?? [])] };
  const fanout = new WebhookFanout({
    log,
    logger,
    targets,
    backlog,
    deadLetters,
    deadLetter,
    now,
    observe: () => undefined,
  });
  fanout.start();
  return { fanout, deadLetters };
}

const waiting = async (): Promise<Record<string, number>> =>
  (await log.jsm.streams.info(WEBHOOKS_STREAM, { subjects_filter: '>' })).state.subjects ?? {};

it("deliveries beyond a receiver's or an organization's bound are dead-lettered, and others are not affected", async () => {
  const { fanout, deadLetters } = await startFanout(
    { org_x: ['wh_1', 'wh_2'], org_y: ['wh_3'] },
    { receiver_max: 5, org_max: 8 },
  );
  await publishEvents(log, 7, { org_id: 'org_x' });
  const sent = await publishEvents(log, 4, { org_id: 'org_y' });
  await eventually(async () => (await waiting())[webhookSubject('org_y', 'wh_3')] === sent.length);
  expect(await waiting()).toEqual({ 'webhooks.org_x.wh_1': 4, 'webhooks.org_x.wh_2': 4, 'webhooks.org_y.wh_3': 4 });
  const letters = await deadLetters.read(await deadLetters.keys('org_x'));
  expect(letters.map(({ letter }) => letter.reason)).toEqual(Array.from({ length: 6 }, () => 'backlog'));
  expect(await deadLetters.keys('org_y')).toEqual([]);
  // A poll after the queue was emptied makes room for new deliveries.
  await log.jsm.streams.purge(WEBHOOKS_STREAM);
  await fanout.stop();
  const again = await startFanout({ org_x: ['wh_1'] }, { receiver_max: 5 });
  await publishEvents(log, 1, { org_id: 'org_x' });
  await eventually(async () => (await waiting())['webhooks.org_x.wh_1'] === 1);
  await again.fanout.stop();
});

it('an event that is too large is dead-lettered and delays no other', async () => {
  const { fanout, deadLetters } = await startFanout({ org_big: ['wh_1'] }, {});
  const event = `trace.${'x'.repeat(WEBHOOK_MESSAGE_BYTES_MAX)}`;
  await publishEvents(log, 1, { org_id: 'org_big', event });
  await publishEvents(log, 1, { org_id: 'org_big' });
  await eventually(async () => (await waiting())['webhooks.org_big.wh_1'] === 1);
  const letters = await deadLetters.read(await deadLetters.keys('org_big'));
  expect(letters.map(({ letter }) => [letter.reason, letter.body.includes(event)])).toEqual([['too_large', true]]);
  await fanout.stop();
});

it('an unreadable message for whose dead letter there is no room delays no other', async () => {
  const buried: number[] = [];
  const { fanout } = await startFanout({ org_next: ['wh_1'] }, {}, ({ seq }) => {
    buried.push(seq);
    return Promise.reject(new Error('no room'));
  });
  await log.js.publish(EVENTS_SUBJECT, 'rubbish');
  await publishEvents(log, 1, { org_id: 'org_next' });
  await eventually(async () => (await waiting())['webhooks.org_next.wh_1'] === 1);
  expect(buried).toHaveLength(1);
  await fanout.stop();
});

it('only the newest dead letters of an organization are kept', async () => {
  const letters = await WebhookDeadLetters.open(log);
  const put = (org_id: string, at: number) =>
    letters.put({
      event_id: `evt_${at}`,
      event: 'trace.completed',
      org_id,
      target_kind: 'endpoint',
      target_id: 'wh_1',
      body: '{}',
      created_at: at,
      attempts: 1,
      reason: 'expired',
      status_code: 500,
      error: null,
      died_at: new Date(at).toISOString(),
    });
  await put('org_few', 1);
  const count = DEAD_LETTERS_ORG_MAX + 500;
  for (let at = 0; at < count; at += 100)
    await Promise.all(Array.from({ length: 100 }, (_, more) => put('org_many', at + more)));
  const keys = await letters.keys('org_many');
  expect(keys.length).toBeGreaterThanOrEqual(DEAD_LETTERS_ORG_MAX);
  expect(keys.length).toBeLessThan(DEAD_LETTERS_ORG_MAX + 100);
  expect(keys).toContain(`org_many.wh_1.evt_${count - 1}`);
  expect(keys).not.toContain('org_many.wh_1.evt_0');
  expect(await letters.keys('org_few')).toHaveLength(1);
});

it('outside development no private address is connected to, by address or by name, and the reason is recorded', async () => {
  const worker = await startTestWebhooks(nats.url, {
    publicOnly: true,
    timings: { ...FAST, giveUpMs: 100 },
    resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
  });
  const { port } = new URL(receiver.url);
  for (const host of ['127.0.0.1', 'localhost', 'receiver.example', '[::ffff:127.0.0.1]'])
    await putEndpoint(worker.log, { org_id: 'org_inside', url: `http://${host}:${port}/inside` });
  const [event_id = ''] = await publishEvents(worker.log, 1, { org_id: 'org_inside' });
  const deadLetters = await WebhookDeadLetters.open(log);
  await eventually(async () => (await deadLetters.ofEvent('org_inside', event_id)).length === 4);
  for (const { letter } of await deadLetters.ofEvent('org_inside', event_id))
    expect([letter.status_code, letter.error]).toEqual([
      null,
      "refused: the receiver's address is not on the public Internet",
    ]);
  expect(receiver.received).toEqual([]);
  await worker.stop();
});

it('a process refuses to start when secrets are sealed under another key, and in development all processes share one', async () => {
  const [first, second] = await Promise.all([openSealer(log, undefined), openSealer(log, undefined)]);
  expect(second.open(first.seal('whsec_x', 'a'), 'a')).toBe('whsec_x');
  await expect(openSealer(log, 'ab'.repeat(32))).rejects.toThrow(/^SERVICE_ENCRYPTION_KEY: got another key/);

  const own = await startTestNats();
  const other = await openWebhookLog(own.url);
  const key = Buffer.alloc(32, 9).toString('base64');
  const sealed = (await openSealer(other, key)).seal('whsec_x', 'a');
  expect((await openSealer(other, Buffer.from(key, 'base64').toString('hex'))).open(sealed, 'a')).toBe('whsec_x');
  await expect(openSealer(other, undefined)).rejects.toThrow(/^SERVICE_ENCRYPTION_KEY: got nothing/);
  // The store holds no copy of the key itself.
  expect((await (await other.bucket('service')).get('encryption'))?.string()).not.toContain(key.slice(0, 12));
  await other.nc.close();
  await own.remove();
});
