// Idempotency-Key over two API instances on one nats-server: the work is done once, the answer is the first one, and a
// holder that died blocks for seconds only.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Idempotency } from '../../../api/http/idempotency.ts';
import { INGEST_STREAM } from '../../../ops/streams.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { ADMIN_TOKEN, anEvent, call, INGEST, KEY, ORG, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let one: TestApi;
let two: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  one = await startTestApi({ natsUrl: nats.url });
  two = await startTestApi({ natsUrl: nats.url });
});

afterAll(async () => {
  await one.close();
  await two.close();
  await nats.remove();
});

const post = (api: TestApi, key: string, body: unknown, path = `${INGEST}/custom`) =>
  call(api, 'POST', path, { body, headers: { 'Idempotency-Key': key } });
const stored = async () => (await one.log.jsm.streams.info(INGEST_STREAM)).state.messages;

describe('ingest under an Idempotency-Key', () => {
  test('a repeat at another instance gets the first answer and stores nothing', async () => {
    const key = randomUUID();
    const first = await post(one, key, anEvent());
    const before = await stored();
    const again = await post(two, key, anEvent());
    expect([first.status, again.status, again.text]).toEqual([200, 200, first.text]);
    expect([first.headers.get('idempotency-replayed'), again.headers.get('idempotency-replayed')]).toEqual([null, 'true']);
    expect(again.headers.get('x-request-id')).toMatch(/^req_/);
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    expect((first.json?.['meta'] as { request_id: string }).request_id).toBe(first.headers.get('x-request-id'));
    expect(await stored()).toBe(before);
  });

  test('another body is idempotency_key_reused, another endpoint is another key', async () => {
    const key = randomUUID();
    expect((await post(one, key, anEvent())).status).toBe(200);
    const reused = await post(two, key, anEvent({ name: 'other' }));
    expect([reused.status, reused.json?.['code']]).toEqual([422, 'idempotency_key_reused']);
    const app = await post(two, key, { events: [{ event_type: 'view', session_id: 's' }] }, `${INGEST}/app`);
    expect([app.status, app.headers.get('idempotency-replayed')]).toEqual([200, null]);
  });

  test('of many at once one does the work; the others wait their turn or get its answer', async () => {
    const key = randomUUID();
    const before = await stored();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => post(index % 2 === 0 ? one : two, key, anEvent({ name: key }))),
    );
    expect(await stored()).toBe(before + 1);
    const kinds = answers.map(({ status, json, headers }) =>
      status === 200 ? (headers.get('idempotency-replayed') ?? 'first') : json?.['code'],
    );
    expect(kinds.filter((kind) => kind === 'first')).toHaveLength(1);
    expect(kinds.filter((kind) => !['first', 'true', 'idempotency_in_progress'].includes(String(kind)))).toEqual([]);
  });

  test('an answer that is no success is not kept', async () => {
    const key = randomUUID();
    expect((await post(one, key, anEvent({ outcome: 'maybe' }))).status).toBe(422);
    expect((await post(one, key, anEvent())).status).toBe(200);
  });

  test('a key that is no UUID is invalid_request', async () => {
    const answer = await post(one, 'not-a-uuid', anEvent());
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
  });
});

describe('other POST endpoints', () => {
  test('a made key is made once; what is kept of its answer shows no secret', async () => {
    const key = randomUUID();
    const body = { name: 'once', scopes: ['traces:read'] };
    const first = await post(one, key, body, `/orgs/${ORG}/api-keys`);
    const again = await post(two, key, body, `/orgs/${ORG}/api-keys`);
    expect([first.status, again.status, again.text]).toEqual([201, 201, first.text]);
    const raw = String(first.json?.['raw_key']);
    const kv = await one.log.bucket('idempotency');
    const held: string[] = [];
    for await (const name of await kv.keys()) held.push((await kv.get(name))?.string() ?? '');
    expect(held.length).toBeGreaterThan(0);
    expect(held.filter((text) => text.includes(raw) || text.includes(key))).toEqual([]);
    const list = await call(one, 'GET', `/orgs/${ORG}/api-keys`);
    expect((list.json?.['data'] as { name: string }[]).filter(({ name }) => name === 'once')).toHaveLength(1);
  });

  test('an error gives the key back', async () => {
    const key = randomUUID();
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Idempotency-Key': key };
    const body = { org_id: ORG, name: 'taken', plan_name: 'free', owner: { user_id: 'u', email: 'u@example.com' } };
    for (let time = 0; time < 2; time++) {
      const answer = await call(one, 'POST', '/admin/orgs', { body, headers });
      expect([answer.status, answer.json?.['code']]).toEqual([409, 'conflict']);
    }
  });
});

describe('the lock', () => {
  test('of a holder that died is taken over after its deadline, not before', async () => {
    const kv = await one.log.bucket('idempotency');
    let now = 1_000_000;
    const make = () => new Idempotency({ kv, now: () => now, connected: () => true, onProblem: () => undefined });
    const request = { org_id: ORG, endpoint: 'POST /x', key: randomUUID(), body: 'b' };
    const dead = await make().begin(request);
    expect('lock' in dead).toBe(true);
    await expect(make().begin(request)).rejects.toMatchObject({ code: 'idempotency_in_progress' });
    now += 10_001;
    const taken = await make().begin(request);
    if (!('lock' in taken) || !('lock' in dead)) throw new Error('no lock');
    await taken.lock.keep({ status: 200, body: 'done by the second' });
    await dead.lock.keep({ status: 200, body: 'too late' });
    await expect(make().begin(request)).resolves.toEqual({ replay: { status: 200, body: 'done by the second' } });
  });

  test('a sealed answer opens for its own credential only', async () => {
    const kv = await one.log.bucket('idempotency');
    const idempotency = new Idempotency({ kv, now: Date.now, connected: () => true, onProblem: () => undefined });
    const request = { org_id: ORG, endpoint: 'POST /y', key: randomUUID(), body: 'b', sealWith: KEY };
    const begun = await idempotency.begin(request);
    if (!('lock' in begun)) throw new Error('no lock');
    await begun.lock.keep({ status: 201, body: '{"raw_key":"sk_svc_secret"}' });
    await expect(idempotency.begin(request)).resolves.toEqual({ replay: { status: 201, body: '{"raw_key":"sk_svc_secret"}' } });
    await expect(idempotency.begin({ ...request, sealWith: 'another' })).rejects.toMatchObject({ code: 'idempotency_key_reused' });
  });

  test('without a connection the request is refused at once', async () => {
    const idempotency = new Idempotency({
      kv: await one.log.bucket('idempotency'),
      now: Date.now,
      connected: () => false,
      onProblem: () => undefined,
    });
    await expect(idempotency.begin({ org_id: ORG, endpoint: 'POST /z', key: randomUUID(), body: '' })).rejects.toMatchObject({
      code: 'upstream_unavailable',
    });
  });
});
