// Webhooks end to end behind the API: events in JetStream, a worker, and receivers that behave well
// or badly.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Sealer } from '../../../ops/platform/sealing.ts';
import { WEBHOOKS_STREAM } from '../../../schemas/streams.ts';
import { freshDelivery, publishDelivery, WebhookDeadLetters } from '../../../ops/exchange/webhook_queue.ts';
import { webhookKey, webhookSealContext } from '../../../schemas/records/webhook.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import {
  endless,
  flood,
  hang,
  type Receiver,
  reset,
  signersOf,
  startReceiver,
  status,
} from '../../support/receiver.ts';
import { eventually } from '../../support/wait.ts';
import {
  FAST,
  publishEvents,
  putEndpoint,
  SEALING_KEY,
  startTestWebhooks,
  type TestWebhooks,
} from '../../support/webhooks.ts';

let nats: TestNats;
let receiver: Receiver;
let worker: TestWebhooks;

beforeAll(async () => {
  nats = await startTestNats();
});
beforeEach(async () => {
  receiver = await startReceiver();
  worker = await startTestWebhooks(nats.url);
});
afterEach(async () => {
  const kv = await worker.log.bucket('webhooks');
  for await (const key of await kv.keys()) await kv.purge(key);
  await worker.stop();
  await receiver.close();
});
afterAll(() => nats.remove());

/** Returns whether no delivery waits or is in progress. */
const isQuiet = async () => (await worker.log.jsm.streams.info(WEBHOOKS_STREAM)).state.messages === 0;
const settled = () => eventually(isQuiet, { what: 'an empty queue' });

/** Creates an endpoint that the worker knows. */
async function endpoint(path: string, over: Parameters<typeof putEndpoint>[1] | object = {}, secret?: string) {
  return putEndpoint(worker.log, { url: receiver.url + path, ...over }, secret);
}

describe('a delivery', () => {
  it('a delivery is a signed POST of the event to its subscribers in the organization', async () => {
    await endpoint('/all', { events: ['trace.started', 'trace.completed'] }, 'whsec_mine');
    await endpoint('/other-kind', { events: ['trace.started'] });
    await endpoint('/other-org', { org_id: 'org_b' });
    await endpoint('/disabled', { enabled: false });
    const [id = ''] = await publishEvents(worker.log);
    await eventually(() => receiver.at('/all').length === 1);
    await settled();
    expect(receiver.received).toHaveLength(1);
    const [got] = receiver.received;
    if (got === undefined) throw new Error('nothing came');
    expect(got.headers).toMatchObject({
      'content-type': 'application/json',
      'x-service-event-id': id,
      'x-service-attempt': '0',
    });
    expect(got.headers['user-agent']).toMatch(/^Millrace/);
    expect(got.headers['x-service-signature']).toMatch(/^t=\d{10},v1=[0-9a-f]{64}$/);
    expect(got.body.toString('utf8')).toBe(`{"event":"trace.completed","trace_id":"trc_${id.slice(4)}","note":"ü"}`);
    expect(signersOf(got, ['whsec_mine', 'whsec_test'])).toEqual(['whsec_mine']);
  });

  it('a delivery is made once although its event was published twice', async () => {
    await endpoint('/hook');
    const delivery = freshDelivery({
      event_id: 'evt_twice',
      event: 'trace.completed',
      org_id: 'org_a',
      target_kind: 'endpoint',
      target_id: (await endpoint('/twice')).webhook_id,
      body: '{}',
      created_at: Date.now(),
    });
    await publishDelivery(worker.log, delivery, '0');
    await eventually(() => receiver.at('/twice').length === 1);
    await publishDelivery(worker.log, delivery, '0');
    await settled();
    expect(receiver.at('/twice')).toHaveLength(1);
  });

  it('a delivery is signed by every valid secret during a rotation, and by no expired one', async () => {
    const { webhook_id, org_id } = await endpoint('/hook');
    const sealer = new Sealer(SEALING_KEY);
    const seal = (secret: string, expires_at: string | null) => ({
      sealed: sealer.seal(secret, webhookSealContext(org_id, webhook_id)),
      created_at: new Date().toISOString(),
      expires_at,
    });
    const [soon, past] = [new Date(Date.now() + 60_000).toISOString(), new Date(Date.now() - 1).toISOString()];
    await endpoint('/hook', {
      webhook_id,
      secrets: [seal('whsec_new', null), seal('whsec_old', soon), seal('whsec_dead', past)],
    });
    await publishEvents(worker.log);
    await eventually(() => receiver.at('/hook').length === 1);
    const [got] = receiver.at('/hook');
    if (got === undefined) throw new Error('nothing came');
    expect(signersOf(got, ['whsec_new', 'whsec_old', 'whsec_dead', 'whsec_test'])).toEqual(['whsec_new', 'whsec_old']);
  });

  it("a delivery of an alert goes to the alert's address, which is not an endpoint", async () => {
    const alerts = await startTestWebhooks(nats.url, {
      alertTargetOf: (org_id, target_id) =>
        target_id === 'budget' ? { url: `${receiver.url}/${org_id}`, secrets: ['whsec_alert'] } : null,
    });
    await worker.webhooks.stop();
    const what = {
      event_id: 'evt_alert',
      event: 'budget.threshold_breach',
      org_id: 'org_a',
      body: '{"event":"budget.threshold_breach"}',
      created_at: 1,
    };
    await publishDelivery(worker.log, freshDelivery({ ...what, target_kind: 'alert', target_id: 'budget' }), '0');
    await publishDelivery(worker.log, freshDelivery({ ...what, target_kind: 'alert', target_id: 'gone' }), '0');
    await settled();
    await alerts.stop();
    expect(receiver.received.map((one) => [one.path, signersOf(one, ['whsec_alert'])])).toEqual([
      ['/org_a', ['whsec_alert']],
    ]);
  });
});

describe('a try that failed', () => {
  it.each([500, 502, 503, 599, 408, 429])(
    'an attempt that failed with %i is repeated, counted, under the same id and with the same bytes',
    async (code) => {
      receiver.behave('/hook', (res, { attempt }) => {
        status(attempt < 3 ? code : 204)(res, {} as never);
      });
      await endpoint('/hook');
      const [id] = await publishEvents(worker.log);
      await eventually(() => receiver.at('/hook').length >= 4);
      await settled();
      const tries = receiver.at('/hook');
      expect(tries.map(({ attempt }) => attempt)).toEqual([0, 1, 2, 3]);
      expect(new Set(tries.map(({ event_id }) => event_id))).toEqual(new Set([id]));
      expect(new Set(tries.map(({ body }) => body.toString())).size).toBe(1);
      for (const one of tries) expect(signersOf(one, ['whsec_test'])).toHaveLength(1);
    },
  );

  it.each([400, 401, 404, 410, 422, 301, 302, 307, 308, 304])(
    'an attempt that failed with %i is the last one',
    async (code) => {
      receiver.behave('/hook', status(code, { Location: `${receiver.url}/elsewhere` }));
      await endpoint('/hook');
      await publishEvents(worker.log);
      await eventually(() => receiver.received.length > 0);
      await settled();
      expect(receiver.received.map(({ path, attempt }) => [path, attempt])).toEqual([['/hook', 0]]);
    },
  );

  it.each([
    ['hangs', hang],
    ['breaks the connection', reset],
  ])('an attempt that failed because the receiver %s is repeated', async (_, behaviour) => {
    receiver.behave('/hook', (res, got) => {
      (got.attempt === 0 ? behaviour : status(200))(res, got);
    });
    await endpoint('/hook');
    await publishEvents(worker.log);
    await eventually(() => receiver.at('/hook').length >= 2);
    await settled();
    expect(receiver.at('/hook').map(({ attempt }) => attempt)).toEqual([0, 1]);
  });

  it('the next attempt waits as long as the receiver asks', async () => {
    receiver.behave('/hook', (res, got) => {
      (got.attempt === 0 ? status(429, { 'Retry-After': '1' }) : status(200))(res, got);
    });
    await endpoint('/hook');
    await publishEvents(worker.log);
    await eventually(() => receiver.at('/hook').length >= 2);
    const [first, second] = receiver.at('/hook');
    // The minimum that Retry-After asks for; without the header the wait would be 20 ms at most.
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(990);
  });

  it('an attempt is not repeated at an endpoint that was disabled or deleted meanwhile', async () => {
    receiver.behave('/hook', status(500));
    const { webhook_id } = await endpoint('/hook');
    await publishEvents(worker.log);
    await eventually(() => receiver.at('/hook').length >= 2);
    await endpoint('/hook', { webhook_id, enabled: false });
    await settled();
    const tries = receiver.at('/hook').length;
    await endpoint('/hook', { webhook_id, enabled: true });
    // Events published before the worker knows of the change are not delivered.
    await eventually(async () => {
      await publishEvents(worker.log);
      return receiver.at('/hook').length > tries;
    });
    await (await worker.log.bucket('webhooks')).delete(webhookKey('org_a', webhook_id));
    await settled();
  });
});

describe('receivers that behave badly', () => {
  it('hanging, resetting, flooding and endless receivers do not delay a healthy one', async () => {
    await worker.stop();
    worker = await startTestWebhooks(nats.url, { timings: { ...FAST, timeoutMs: 3000 } });
    const bad = { hang, reset, flood, endless };
    for (const [name, behaviour] of Object.entries(bad)) {
      for (let at = 0; at < 5; at += 1) {
        receiver.behave(`/${name}${at}`, behaviour);
        await endpoint(`/${name}${at}`);
      }
    }
    await endpoint('/healthy');
    await publishEvents(worker.log, 20);
    await eventually(() => receiver.at('/healthy').length === 20);
    // While the bad receivers are still being retried, new events reach the healthy one.
    expect(await isQuiet()).toBe(false);
    await publishEvents(worker.log, 20);
    await eventually(() => receiver.at('/healthy').length === 40);
    expect(receiver.at('/flood0').length).toBeGreaterThan(0);
    // The receiver had answered with its status, so the body after it does not make the attempt
    // fail.
    for (const one of receiver.received) if (/flood|endless/.test(one.path)) expect(one.attempt).toBe(0);
  });
});

describe('an event that fails until its time is over', () => {
  it('an event that fails until its deadline is dead-lettered with all that a replay needs', async () => {
    await worker.stop();
    worker = await startTestWebhooks(nats.url, { timings: { ...FAST, giveUpMs: 400 } });
    receiver.behave('/hook', status(503));
    const { webhook_id } = await endpoint('/hook');
    const [id = ''] = await publishEvents(worker.log);
    const letters = await WebhookDeadLetters.open(worker.log);
    await eventually(async () => (await letters.ofEvent('org_a', id)).length === 1);
    await settled();
    const [stored] = await letters.ofEvent('org_a', id);
    const tries = receiver.at('/hook');
    expect(tries.length).toBeGreaterThan(2);
    expect(stored?.letter).toMatchObject({
      event_id: id,
      target_id: webhook_id,
      event: 'trace.completed',
      reason: 'expired',
      attempts: tries.length,
      status_code: 503,
      body: tries[0]?.body.toString('utf8'),
    });
  });
});
