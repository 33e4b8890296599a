// Webhook endpoints over HTTP: rules, secrets, test events, the attempt log, dead letters and their
// replay.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSealer } from '../../../ops/platform/sealing.ts';
import { WEBHOOKS_STREAM } from '../../../schemas/streams.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { type Receiver, signersOf, startReceiver, status } from '../../support/receiver.ts';
import { eventually } from '../../support/wait.ts';
import { FAST, openWebhookLog, publishEvents, startTestWebhooks, type TestWebhooks } from '../../support/webhooks.ts';
import { makeKey, makeOrg } from '../a_tenant.ts';
import { call, ORG, startTestApi, type TestApi } from './an_api.ts';

const ROOT = `/orgs/${ORG}/webhooks`;
const URL_OK = 'https://example.com/hook';

let nats: TestNats;
let database: TestDatabase;
let receiver: Receiver;
let api: TestApi;
let other: TestApi;
let worker: TestWebhooks;

async function startWorker(): Promise<TestWebhooks> {
  const log = await openWebhookLog(nats.url);
  const sealer = await openSealer(log, undefined);
  await log.nc.close();
  return startTestWebhooks(nats.url, { sealer, timings: { ...FAST, giveUpMs: 300 }, clickhouseUrl: database.url });
}

beforeAll(async () => {
  nats = await startTestNats();
  database = await createTestDatabase();
  receiver = await startReceiver();
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  other = await startTestApi({ natsUrl: nats.url });
  worker = await startWorker();
});
afterAll(async () => {
  await worker.stop();
  await api.close();
  await other.close();
  await receiver.close();
  await nats.remove();
  await database.drop();
});

type Data = Record<string, unknown>;
const dataOf = ({ json }: { json: Data | null }): Data => json?.['data'] as Data;
const listOf = ({ json }: { json: Data | null }): Data[] => json?.['data'] as Data[];

async function create(body: Data = {}): Promise<Data> {
  const answer = await call(api, 'POST', ROOT, { body: { url: URL_OK, events: ['trace.completed'], ...body } });
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return dataOf(answer);
}
const one = (webhook: Data, rest = ''): string => `${ROOT}/${String(webhook['webhook_id'])}${rest}`;
const settled = () => eventually(async () => (await worker.log.jsm.streams.info(WEBHOOKS_STREAM)).state.messages === 0);

describe('an endpoint', () => {
  it('an endpoint is created with a secret that is shown once, read by every process, changed and deleted', async () => {
    const made = await create({ description: 'ops' });
    expect(made).toEqual({
      webhook_id: expect.stringMatching(/^wh_[0-9a-f]{16}$/) as unknown,
      url: URL_OK,
      events: ['trace.completed'],
      description: 'ops',
      enabled: true,
      created_at: expect.stringMatching(/Z$/) as unknown,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9_-]{40,}$/) as unknown,
    });
    const { secret, ...shown } = made;
    await eventually(async () => (await call(other, 'GET', one(made))).status === 200);
    expect(dataOf(await call(other, 'GET', one(made)))).toEqual(shown);
    const list = await call(other, 'GET', ROOT);
    expect(listOf(list)).toContainEqual(shown);
    expect(list.json?.['meta']).toMatchObject({ total: listOf(list).length, page: 1, per_page: 50, has_more: false });

    const patched = await call(api, 'PATCH', one(made), {
      body: { enabled: false, events: ['cost_anomaly', 'cost.anomaly'], description: '' },
    });
    expect(dataOf(patched)).toEqual({ ...shown, enabled: false, events: ['cost.anomaly'], description: '' });
    expect((await call(api, 'PATCH', one(made), { body: { enabled: true } })).status).toBe(200);
    expect(dataOf(await call(api, 'GET', one(made)))).toMatchObject({ enabled: true, events: ['cost.anomaly'] });

    expect(dataOf(await call(api, 'DELETE', one(made)))).toEqual({ webhook_id: made['webhook_id'], deleted: true });
    for (const [method, path, body] of [
      ['GET', one(made)],
      ['PATCH', one(made), {}],
      ['DELETE', one(made)],
      ['POST', one(made, '/test')],
      ['POST', one(made, '/secrets'), {}],
      ['GET', one(made, '/deliveries')],
    ] as const) {
      const answer = await call(api, method, path, { body });
      expect([method, path, answer.status, answer.json?.['code']]).toEqual([method, path, 404, 'webhook_not_found']);
    }
    expect(String(secret)).not.toBe('');
  });

  it("an endpoint's secret is stored sealed", async () => {
    const made = await create({ secret: 'whsec_of_my_own' });
    expect(made['secret']).toBe('whsec_of_my_own');
    const entry = await (await worker.log.bucket('webhooks')).get(`${ORG}.${String(made['webhook_id'])}`);
    expect(entry?.string()).toContain(URL_OK);
    expect(entry?.string()).not.toContain('whsec_');
    for (const path of [ROOT, one(made)]) expect((await call(api, 'GET', path)).text).not.toContain('secret');
  });

  it('an endpoint is created once for an Idempotency-Key, and its answer is not kept in clear text', async () => {
    const headers = { 'Idempotency-Key': randomUUID() };
    const body = { url: URL_OK, events: ['pii.match'] };
    const [first, second] = [
      await call(api, 'POST', ROOT, { body, headers }),
      await call(api, 'POST', ROOT, { body, headers }),
    ];
    expect(second.text).toBe(first.text);
    const kept: string[] = [];
    const kv = await worker.log.bucket('idempotency');
    for await (const key of await kv.keys()) kept.push((await kv.get(key))?.string() ?? '');
    expect(kept.length).toBeGreaterThan(0);
    expect(kept.join()).not.toContain('whsec_');
  });

  it.each([
    [{ events: ['trace.completed', 'trace.finished'] }, 'events[1]'],
    [{ events: ['*'] }, 'events[0]'],
    [{ events: [] }, 'events'],
    [{ events: 'trace.completed' }, 'events'],
    [{ events: undefined }, 'events'],
    [{ url: undefined }, 'url'],
    [{ url: 'http://example.com/hook' }, 'url'],
    [{ url: 'ftp://example.com' }, 'url'],
    [{ url: 'https://user:pass@example.com/hook' }, 'url'],
    [{ url: 'https://example.com/hook#here' }, 'url'],
    [{ url: 'not a url' }, 'url'],
    [{ secret: '' }, 'secret'],
    [{ secret: 'two words' }, 'secret'],
    [{ secret: 'x'.repeat(257) }, 'secret'],
    [{ description: 'x'.repeat(501) }, 'description'],
    [{ enabled: 'yes' }, 'enabled'],
    [{ color: 'red' }, 'color'],
  ])('an invalid endpoint is rejected, naming the field: %#', async (over, field) => {
    const answer = await call(api, 'POST', ROOT, { body: { url: URL_OK, events: ['trace.completed'], ...over } });
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(String(answer.json?.['detail'])).toMatch(new RegExp(`^${RegExp.escape(field)}: `));
  });

  it('an update of an endpoint changes only what may be changed', async () => {
    const made = await create();
    for (const body of [
      { url: 'https://example.com/' },
      { secret: 'abc' },
      { events: [] },
      { events: ['nope'] },
      { webhook_id: 'x' },
    ])
      expect((await call(api, 'PATCH', one(made), { body })).status).toBe(422);
    const { secret, ...shown } = made;
    expect(secret).toBeDefined();
    expect(dataOf(await call(api, 'GET', one(made)))).toEqual(shown);
  });

  it('an endpoint belongs to its organization and requires the scopes', async () => {
    const made = await create();
    const foreign = await makeKey(api, await makeOrg(api, { org_id: 'org_two', plan_name: 'pro' }), ['*']);
    expect((await call(api, 'GET', one(made), { headers: foreign })).json?.['code']).toBe('cross_org_access');
    expect(
      (await call(api, 'GET', `/orgs/org_two/webhooks/${String(made['webhook_id'])}`, { headers: foreign })).json?.[
        'code'
      ],
    ).toBe('webhook_not_found');
    expect(listOf(await call(api, 'GET', '/orgs/org_two/webhooks', { headers: foreign }))).toEqual([]);
    const reader = await makeKey(api, ORG, ['webhooks:read']);
    expect((await call(api, 'GET', ROOT, { headers: reader })).status).toBe(200);
    for (const [method, path] of [
      ['POST', ROOT],
      ['PATCH', one(made)],
      ['DELETE', one(made)],
      ['POST', one(made, '/test')],
    ] as const)
      expect((await call(api, method, path, { headers: reader, body: {} })).json?.['code']).toBe('forbidden');
    const writer = await makeKey(api, ORG, ['webhooks:write']);
    expect((await call(api, 'GET', ROOT, { headers: writer })).status).toBe(403);
    expect((await call(api, 'DELETE', one(made), { headers: writer })).status).toBe(200);
  });

  it('an endpoint may not lead into a private network outside development', async () => {
    const production = await startTestApi({ natsUrl: nats.url, production: true });
    const post = async (url: string) =>
      (await call(production, 'POST', ROOT, { body: { url, events: ['trace.started'] } })).status;
    for (const url of [
      'http://localhost:9000/',
      'http://127.0.0.1/',
      'https://127.0.0.1/',
      'https://10.1.2.3/',
      'https://[::1]/',
      'https://localhost/',
      'https://0x7f000001/',
    ])
      expect([url, await post(url)]).toEqual([url, 422]);
    expect(await post('https://example.com/')).toBe(201);
    await production.close();
  });
});

describe('deliveries', () => {
  it('a test event is delivered on request, and the attempt log shows it', async () => {
    const made = await create({ url: `${receiver.url}/test`, events: ['pii.match'] });
    const answer = await call(api, 'POST', one(made, '/test'));
    expect(answer.status).toBe(200);
    const { event_id } = dataOf(answer);
    await eventually(() => receiver.at('/test').length === 1);
    const [got] = receiver.at('/test');
    expect(got?.json).toMatchObject({ event: 'webhook.test', webhook_id: made['webhook_id'], org_id: ORG });
    expect(got?.event_id).toBe(event_id);
    expect(got === undefined ? [] : signersOf(got, [String(made['secret'])])).toHaveLength(1);
    await eventually(async () => listOf(await call(api, 'GET', one(made, '/deliveries'))).length === 1);
    const log = await call(api, 'GET', one(made, '/deliveries'));
    expect(listOf(log)).toEqual([
      {
        event_id,
        event: 'webhook.test',
        attempt: 0,
        outcome: 'delivered',
        status_code: 200,
        error: null,
        duration_ms: expect.any(Number) as unknown,
        at: expect.stringMatching(/Z$/) as unknown,
      },
    ]);
    expect(log.json?.['meta']).toMatchObject({ total: 1 });
    expect((await call(other, 'GET', one(made, '/deliveries'))).json?.['code']).toBe('upstream_unavailable');
  });

  it('a disabled endpoint is not tested', async () => {
    const made = await create({ enabled: false });
    expect((await call(api, 'POST', one(made, '/test'))).json?.['code']).toBe('conflict');
  });

  it('deliveries are signed by the old and the new secret during a rotation, and by three at most', async () => {
    const made = await create({ url: `${receiver.url}/rotate` });
    const secrets = [String(made['secret'])];
    for (let turn = 0; turn < 3; turn += 1) {
      const answer = await call(
        api,
        'POST',
        one(made, '/secrets'),
        turn === 1 ? { body: { secret: 'whsec_mine' } } : {},
      );
      expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
      secrets.unshift(String(dataOf(answer)['secret']));
    }
    expect(secrets[1]).toBe('whsec_mine');
    await eventually(async () => {
      await call(api, 'POST', one(made, '/test'));
      const got = receiver.at('/rotate').at(-1);
      return got !== undefined && signersOf(got, secrets).length === 3;
    });
    const got = receiver.at('/rotate').at(-1);
    expect(got === undefined ? [] : signersOf(got, secrets)).toEqual(secrets.slice(0, 3));
  });

  it('dead-lettered deliveries are listed, and replayed with the original payload under the same id', async () => {
    const made = await create({ url: `${receiver.url}/dead`, events: ['judge.regression'] });
    // The arrival of a test event shows that the worker knows the endpoint.
    await call(api, 'POST', one(made, '/test'));
    await eventually(() => receiver.at('/dead').length > 0);
    await settled();
    receiver.received.length = 0;
    receiver.behave('/dead', status(500));
    const [event_id = ''] = await publishEvents(worker.log, 1, { org_id: ORG, event: 'judge.regression' });
    const letters = `${ROOT}/dead-letters`;
    await eventually(
      async () => listOf(await call(api, 'GET', `${letters}?webhook_id=${String(made['webhook_id'])}`)).length === 1,
    );
    const [letter] = listOf(await call(api, 'GET', letters));
    const [first] = receiver.at('/dead');
    expect(letter).toMatchObject({
      event_id,
      webhook_id: made['webhook_id'],
      event: 'judge.regression',
      reason: 'expired',
      status_code: 500,
      payload: first?.json,
    });
    expect(Number(letter?.['attempts'])).toBe(receiver.at('/dead').length);

    await call(api, 'PATCH', one(made), { body: { enabled: false } });
    expect((await call(api, 'POST', `${letters}/${event_id}/replay`)).json?.['code']).toBe('conflict');
    await call(api, 'PATCH', one(made), { body: { enabled: true } });
    receiver.behave('/dead', status(200));
    const before = receiver.at('/dead').length;
    const replay = await call(api, 'POST', `${letters}/${event_id}/replay`);
    expect([replay.status, dataOf(replay)]).toEqual([
      200,
      { event_id, replayed: 1, webhook_ids: [made['webhook_id']] },
    ]);
    await eventually(() => receiver.at('/dead').length === before + 1);
    const last = receiver.at('/dead').at(-1);
    expect([last?.event_id, last?.attempt, last?.body.toString()]).toEqual([event_id, 0, first?.body.toString()]);
    await settled();
    expect(listOf(await call(api, 'GET', letters))).toEqual([]);
    expect((await call(api, 'POST', `${letters}/${event_id}/replay`)).status).toBe(404);
    expect((await call(api, 'POST', `${letters}/no.such/replay`)).status).toBe(422);
    await eventually(async () => {
      const log = listOf(await call(api, 'GET', `${one(made, '/deliveries')}?event_id=${event_id}`));
      return (
        log[0]?.['outcome'] === 'delivered' &&
        log.at(-1)?.['outcome'] === 'retrying' &&
        log.some((row) => row['outcome'] === 'dead-lettered')
      );
    });
  });

  it('statistics count ended, waiting and dead deliveries, and the dead letters of an endpoint are replayed', async () => {
    const made = await create({ url: `${receiver.url}/stats`, events: ['judge.regression'] });
    await call(api, 'POST', one(made, '/test'));
    await eventually(() => receiver.at('/stats').length > 0);
    await settled();
    receiver.behave('/stats', status(503));
    const sent = await publishEvents(worker.log, 3, { org_id: ORG, event: 'judge.regression' });
    const stats = async (): Promise<Data | undefined> =>
      listOf(await call(api, 'GET', `${ROOT}/stats?days=1`)).find((row) => row['webhook_id'] === made['webhook_id']);
    await eventually(async () => (await stats())?.['dead_letters'] === 3 && (await stats())?.['dead_lettered'] === 3);
    expect(await stats()).toMatchObject({ delivered: 1, failed: 0, success_rate: 0.25, waiting: 0 });

    const replayAll = () => call(api, 'POST', one(made, '/dead-letters/replay'));
    await call(api, 'PATCH', one(made), { body: { enabled: false } });
    expect((await replayAll()).json?.['code']).toBe('conflict');
    await call(api, 'PATCH', one(made), { body: { enabled: true } });
    receiver.behave('/stats', status(200));
    receiver.received.length = 0;
    expect(dataOf(await replayAll())).toEqual({ webhook_id: made['webhook_id'], replayed: 3, remaining: 0 });
    await eventually(() => receiver.at('/stats').length === 3);
    expect(receiver.at('/stats').map(({ event_id }) => event_id)).toEqual(expect.arrayContaining([...sent]));
    expect(dataOf(await replayAll())).toMatchObject({ replayed: 0, remaining: 0 });
    await eventually(async () => (await stats())?.['delivered'] === 4 && (await stats())?.['dead_letters'] === 0);
    const log = await call(api, 'GET', `${one(made, '/deliveries')}?event=webhook.test`);
    expect(listOf(log).map(({ event }) => event)).toEqual(['webhook.test']);
    expect((await call(api, 'GET', `${ROOT}/stats?days=31`)).status).toBe(422);
  });
});
