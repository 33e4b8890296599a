// Idempotency-Key over two API instances on one nats-server: the work is done once and every repeat
// gets the first answer, whichever instance receives it and however many requests arrive at once.
import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { INGEST_STREAM } from '../../../schemas/streams.ts';
import { FINGERPRINT_HEADER, ingestBatchCodec } from '../../../schemas/codec.ts';
import { TEMPLATE_BYTES_MAX } from '../../../schemas/records/prompt.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import {
  ADMIN_TOKEN,
  anEvent,
  type Answer,
  asUser,
  call,
  INGEST,
  ORG,
  startTestApi,
  type TestApi,
  tokenOf,
} from './an_api.ts';

/** Owner of the organization that an API creates at its first start. */
const OWNER = 'user_local';

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

const AT_ONCE = 50;
const post = (api: TestApi, key: string, body: unknown, path = `${INGEST}/custom`) =>
  call(api, 'POST', path, { body, headers: { 'Idempotency-Key': key } });
/** Sends the same request several times at once, alternating between the instances. */
const volley = (key: string, bodyOf: (index: number) => unknown, path?: string): Promise<Answer[]> =>
  Promise.all(
    Array.from({ length: AT_ONCE }, (_, index) => post(index % 2 === 0 ? one : two, key, bodyOf(index), path)),
  );
/**
 * Returns `first` if the request did the work, `true` if the answer is a replay, otherwise the code
 * of the error.
 */
const kindOf = ({ status, json, headers }: Answer): string =>
  status < 300 ? (headers.get('idempotency-replayed') ?? 'first') : String(json?.['code']);
const stored = async () => (await one.log.jsm.streams.info(INGEST_STREAM)).state.messages;

/** Returns the names of all events in the log; an event that is stored twice is listed twice. */
async function namesInLog(): Promise<string[]> {
  const names: string[] = [];
  const { state } = await one.log.jsm.streams.info(INGEST_STREAM);
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await one.log.jsm.streams.getMessage(INGEST_STREAM, { seq });
    if (message === null) continue;
    for (const { body } of ingestBatchCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)).events)
      names.push(String((JSON.parse(body) as { name?: string }).name));
  }
  return names;
}

describe('ingest under an Idempotency-Key', () => {
  test('a repeat of a keyed ingest at another instance gets the first answer and stores nothing', async () => {
    const key = randomUUID();
    const first = await post(one, key, anEvent());
    const before = await stored();
    const again = await post(two, key, anEvent());
    expect([first.status, again.status, again.text]).toEqual([200, 200, first.text]);
    expect([first.headers.get('idempotency-replayed'), again.headers.get('idempotency-replayed')]).toEqual([
      null,
      'true',
    ]);
    expect(again.headers.get('x-request-id')).toMatch(/^req_/);
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    expect((first.json?.['meta'] as { request_id: string }).request_id).toBe(first.headers.get('x-request-id'));
    expect(await stored()).toBe(before);
  });

  test('of a keyed batch of 1000, some hundred bytes are kept, and its answer is repeated to the byte', async () => {
    const key = randomUUID();
    const body = { events: Array.from({ length: 1000 }, (_, index) => anEvent({ name: `n${index}` })) };
    const kv = await one.log.bucket('ingest_keys');
    const before = (await kv.status()).size;
    const first = await post(one, key, body);
    const kept = (await kv.status()).size - before;
    expect([first.status, kept > 0, kept < 500, first.text.length > 100_000]).toEqual([200, true, true, true]);
    const again = await post(two, key, body);
    expect([again.text === first.text, again.headers.get('idempotency-replayed')]).toEqual([true, 'true']);
  });

  test('another body under the same key is idempotency_key_reused, another endpoint has keys of its own', async () => {
    const key = randomUUID();
    expect((await post(one, key, anEvent())).status).toBe(200);
    const reused = await post(two, key, anEvent({ name: 'other' }));
    expect([reused.status, reused.json?.['code']]).toEqual([422, 'idempotency_key_reused']);
    const app = await post(two, key, { events: [{ event_type: 'view', session_id: 's' }] }, `${INGEST}/app`);
    expect([app.status, app.headers.get('idempotency-replayed')]).toEqual([200, null]);
  });

  test('of many concurrent requests with one key, one does the work; the others wait for it or get its answer', async () => {
    const key = randomUUID();
    const before = await stored();
    const names = [1, 2, 3].map((n) => `${key}-${n}`);
    const answers = await volley(key, () => ({ events: names.map((name) => anEvent({ name })) }));
    const kinds = answers.map(kindOf);
    expect(kinds.filter((kind) => kind === 'first')).toHaveLength(1);
    expect(kinds.filter((kind) => !['first', 'true', 'idempotency_in_progress'].includes(kind))).toEqual([]);
    expect(new Set(answers.filter(({ status }) => status === 200).map(({ text }) => text)).size).toBe(1);
    expect(await stored()).toBe(before + 1);
    expect((await namesInLog()).filter((name) => name.startsWith(key)).toSorted()).toEqual(names);
  });

  test('of many concurrent requests with one key and two bodies, only one body is stored', async () => {
    for (let round = 0; round < 5; round++) {
      const key = randomUUID();
      // The body changes after every two requests, so both instances receive both bodies.
      const answers = await volley(key, (index) => anEvent({ name: `${key}-${(index >> 1) % 2}` }));
      const names = new Set((await namesInLog()).filter((name) => name.startsWith(key)));
      expect(names.size).toBe(1);
      const kinds = new Set(answers.map(kindOf));
      expect(kinds.has('first')).toBe(true);
      expect(
        [...kinds].filter(
          (kind) => !['first', 'true', 'idempotency_in_progress', 'idempotency_key_reused'].includes(kind),
        ),
      ).toEqual([]);
      const winner = String([...names][0]).at(-1);
      answers.forEach(({ status }, index) => {
        if (status === 200) expect(String((index >> 1) % 2)).toBe(winner);
      });
    }
  });

  test('an answer that is not a success is not kept under its key', async () => {
    const key = randomUUID();
    expect((await post(one, key, anEvent({ outcome: 'maybe' }))).status).toBe(422);
    expect((await post(one, key, anEvent())).status).toBe(200);
  });

  test('an Idempotency-Key that is not a UUID is invalid_request', async () => {
    const answer = await post(one, 'not-a-uuid', anEvent());
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
  });
});

describe('other POST endpoints', () => {
  const keysNamed = async (name: string) => {
    const list = await call(one, 'GET', `/orgs/${ORG}/api-keys?limit=200`);
    return (list.json?.['data'] as { name: string }[]).filter((key) => key.name === name).length;
  };

  test('an API key is created once under an Idempotency-Key, and the stored answer shows no secret', async () => {
    const key = randomUUID();
    const body = { name: 'once', scopes: ['traces:read'] };
    const first = await post(one, key, body, `/orgs/${ORG}/api-keys`);
    const again = await post(two, key, body, `/orgs/${ORG}/api-keys`);
    expect([first.status, again.status, again.text]).toEqual([201, 201, first.text]);
    const raw = String(first.json?.['raw_key']);
    const kv = await one.log.bucket('idempotency');
    const held: string[] = [];
    for await (const name of await kv.keys()) held.push(`${name} ${(await kv.get(name))?.string() ?? ''}`);
    expect(held.length).toBeGreaterThan(0);
    expect(held.filter((text) => text.includes(raw) || text.includes(key) || text.includes(ORG))).toEqual([]);
    expect(await keysNamed('once')).toBe(1);
  });

  test('of many concurrent POSTs with one key, one does the work; the others are rejected or get its answer', async () => {
    const key = randomUUID();
    const body = { name: `volley ${key}`, scopes: ['traces:read'] };
    const answers = await volley(key, () => body, `/orgs/${ORG}/api-keys`);
    const kinds = answers.map(kindOf);
    expect(kinds.filter((kind) => kind === 'first')).toHaveLength(1);
    expect(kinds.filter((kind) => !['first', 'true', 'idempotency_in_progress'].includes(kind))).toEqual([]);
    expect(new Set(answers.filter(({ status }) => status === 201).map(({ text }) => text)).size).toBe(1);
    expect(await keysNamed(body.name)).toBe(1);
  });

  test('an error releases the Idempotency-Key', async () => {
    const key = randomUUID();
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Idempotency-Key': key };
    const body = { org_id: ORG, name: 'taken', plan_name: 'free', owner: { user_id: 'u', email: 'u@example.com' } };
    for (let time = 0; time < 2; time++) {
      const answer = await call(one, 'POST', '/admin/orgs', { body, headers });
      expect([answer.status, answer.json?.['code']]).toEqual([409, 'conflict']);
    }
  });

  test("the operator's repeat gets the first answer again", async () => {
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Idempotency-Key': randomUUID() };
    const body = { name: 'Made once', plan_name: 'free', owner: { user_id: 'u', email: 'u@example.com' } };
    const first = await call(one, 'POST', '/admin/orgs', { body, headers });
    const again = await call(two, 'POST', '/admin/orgs', { body, headers });
    expect([first.status, again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([
      201,
      201,
      first.text,
      'true',
    ]);
  });

  test('a person whose token was renewed gets the secret that their first request created; another member does not', async () => {
    const key = randomUUID();
    const ask = (api: TestApi, token: string) =>
      call(api, 'POST', `/orgs/${ORG}/api-keys`, {
        body: { name: 'by a person', scopes: ['traces:read'] },
        headers: { ...asUser(token), 'Idempotency-Key': key },
      });
    const soon = Math.floor(Date.now() / 1000) + 900;
    const first = await ask(one, await tokenOf({ sub: OWNER }));
    const renewed = await ask(two, await tokenOf({ sub: OWNER, exp: soon }));
    expect([first.status, renewed.status, renewed.text]).toEqual([201, 201, first.text]);
    const byKey = await post(one, key, { name: 'by a person', scopes: ['traces:read'] }, `/orgs/${ORG}/api-keys`);
    expect([byKey.status, byKey.json?.['code']]).toEqual([422, 'idempotency_key_reused']);
  });

  test('persons without an organization have Idempotency-Keys of their own', async () => {
    const key = randomUUID();
    for (const sub of ['user_first', 'user_second']) {
      const email = `${sub}@example.com`;
      const invite = await call(one, 'POST', `/orgs/${ORG}/members`, { body: { email, role: 'viewer' } });
      const { token } = invite.json?.['data'] as { token: string };
      const accept = async (api: TestApi) =>
        call(api, 'POST', `/orgs/${ORG}/members/accept`, {
          body: { token },
          headers: { ...asUser(await tokenOf({ sub, email })), 'Idempotency-Key': key },
        });
      const first = await accept(one);
      const again = await accept(two);
      expect([invite.status, first.status < 300, again.text, again.headers.get('idempotency-replayed')]).toEqual([
        201,
        true,
        first.text,
        'true',
      ]);
      expect(first.text).toContain(sub);
    }
  });

  test('an answer beyond 64 KiB is made once too, and repeated to the byte', async () => {
    const key = randomUUID();
    // Random text compresses as little as text can. With its quotes it is as large as a template
    // may be.
    const template = randomBytes(TEMPLATE_BYTES_MAX)
      .toString('base64')
      .slice(0, TEMPLATE_BYTES_MAX - 2);
    const body = { name: 'large', template };
    const first = await post(one, key, body, '/v1/prompts');
    const again = await post(two, key, body, '/v1/prompts');
    expect([first.status, again.status, first.text.length > 64 * 1024, again.text === first.text]).toEqual([
      201,
      201,
      true,
      true,
    ]);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const { versions } = (await call(one, 'GET', '/v1/prompts/large')).json?.['data'] as { versions: unknown[] };
    expect(versions).toHaveLength(1);
  });

  test('a failed export releases its key, for another body too', async () => {
    const key = randomUUID();
    // No API of this test has a ClickHouse, so every export fails.
    for (const body of [{ format: 'json' }, { format: 'ndjson' }]) {
      const answer = await post(one, key, body, '/v1/traces/trc_none/export');
      expect([answer.status, answer.json?.['code']]).toEqual([502, 'upstream_unavailable']);
    }
  });

  test('an answer that sets a cookie is made anew each time', async () => {
    const headers = { ...asUser(await tokenOf({ sub: OWNER })), 'Idempotency-Key': randomUUID() };
    for (const api of [one, two]) {
      const answer = await call(api, 'POST', '/v1/session', { headers });
      expect([answer.status, answer.headers.get('set-cookie')?.startsWith('svc_session=')]).toEqual([201, true]);
    }
  });
});
