// A PII policy from the API to the rows. Rows stored after the policy is set contain none of the
// data that it covers, and a search does not find it. Equal values have equal hashes. Exports,
// events and the audit log follow the policy.
import { DeliverPolicy } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EVENTS_STREAM } from '../../../schemas/streams.ts';
import { eventHex } from '../../../pipeline/domain/traces/ids.ts';
import { isReported } from '../../../pipeline/domain/pii/match_sample.ts';
import { FINGERPRINT_HEADER, serviceEventsCodec, type ServiceEvent } from '../../../schemas/codec.ts';
import { orgKey } from '../../../schemas/records/org.ts';
import { createTestDatabase, runStatement, type TestDatabase } from '../../support/clickhouse.ts';
import { noiseOfTwo } from '../../support/noise.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, asUser, call, INGEST, ORG, startTestApi, type TestApi, tokenOf } from '../api/an_api.ts';

const DEFAULTS = { enabled: false, kinds: ['email', 'phone', 'card', 'ip', 'ssn'], custom: [], mode: 'redact' };
const PATH = `/orgs/${ORG}/pii-policy`;
let nats: TestNats;
let database: TestDatabase;
let worker: TestWorker;
let api: TestApi;
let second: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  database = await createTestDatabase();
  const options = { natsUrl: nats.url, clickhouseUrl: database.url };
  api = await startTestApi(options);
  second = await startTestApi(options);
  worker = startWorker(options);
  await worker.ready;
});

afterAll(async () => {
  worker.kill('SIGTERM');
  await worker.exited;
  await api.close();
  await second.close();
  await database.drop();
  await nats.remove();
});

const dataOf = (answer: Answer) => answer.json?.['data'] as Record<string, unknown>;
const put = (body: unknown, at = api): Promise<Answer> => call(at, 'PUT', PATH, { body });
const asOwner = async () => asUser(await tokenOf({ sub: 'user_local' }));

let serial = 0;
/**
 * Sends a custom event that names a person in every field, and resolves with the rows of its trace
 * once they are stored.
 */
async function stored(mail: string, over: Record<string, unknown> = {}): Promise<{ trace_id: string; rows: string }> {
  const trace_id = `trace-${++serial}`;
  const event = {
    name: `mail to ${mail}`,
    event_type: 'llm',
    outcome: 'error',
    duration_ms: 1,
    trace_id,
    tags: [mail],
    attributes: {
      prompt: `write to ${mail}, EMP-123456`,
      response: `done: ${mail}`,
      user_id: mail,
      session_id: mail,
      error_message: `refused ${mail}`,
    },
    ...over,
  };
  expect((await call(api, 'POST', `${INGEST}/custom`, { body: { events: [event] } })).status).toBe(200);
  const tables = ['spans', 'span_texts', 'span_texts_recent', 'traces'];
  const read = async (): Promise<string[]> =>
    Promise.all(
      tables.map((table) =>
        runStatement(database.url, `SELECT * FROM ${table} WHERE trace_id = '${trace_id}' FORMAT JSONEachRow`),
      ),
    );
  let rows: string[] = [];
  await eventually(
    async () => {
      rows = await read();
      return rows[0] !== '' && rows[3] !== '' && (rows[1] !== '' || rows[2] !== '');
    },
    { what: `the rows of ${trace_id}` },
  );
  return { trace_id, rows: rows.join('\n') };
}

/**
 * Sends events until the rows of one satisfy `so`: a policy takes effect within a second, not at
 * once.
 */
async function storedSo(mail: string, so: (rows: string) => boolean): Promise<{ trace_id: string; rows: string }> {
  let last = await stored(mail);
  await eventually(
    async () => {
      if (so(last.rows)) return true;
      last = await stored(mail);
      return so(last.rows);
    },
    { what: 'the policy to hold' },
  );
  return last;
}

describe('the policy', () => {
  test("a PII policy has defaults, accepts single fields, and is also the field pii of the organization's policy", async () => {
    expect(dataOf(await call(api, 'GET', PATH))).toEqual(DEFAULTS);
    const custom = [{ label: 'EMPLOYEE', pattern: 'EMP-\\d{6}' }];
    const set = await put({ kinds: ['card', 'email', 'card'], custom });
    expect([set.status, dataOf(set)]).toEqual([200, { ...DEFAULTS, kinds: ['email', 'card'], custom }]);
    expect(dataOf(await put({ kinds: null }))).toEqual({ ...DEFAULTS, custom });
    expect(dataOf(await call(api, 'GET', `/orgs/${ORG}/policy`))['pii']).toEqual({ ...DEFAULTS, custom });
    const headers = await asOwner();
    const by = await call(api, 'PUT', `/orgs/${ORG}/policy`, {
      headers,
      body: { max_prompt_tokens: 9000, pii: { mode: 'hash', custom: null } },
    });
    expect(dataOf(by)).toMatchObject({ max_prompt_tokens: 9000, pii: { ...DEFAULTS, mode: 'hash' } });
    expect(
      dataOf(await call(api, 'PUT', `/orgs/${ORG}/policy`, { headers, body: { max_prompt_tokens: null, pii: null } })),
    ).toMatchObject({
      max_prompt_tokens: null,
      pii: DEFAULTS,
    });
    await put({ kinds: ['ip'] });
    await eventually(async () => JSON.stringify(dataOf(await call(second, 'GET', PATH))['kinds']) === '["ip"]', {
      what: 'the other process',
    });
    expect(dataOf(await put(DEFAULTS))).toEqual(DEFAULTS);
  });

  test.each([
    [
      {
        custom: [
          { label: 'A', pattern: 'a' },
          { label: 'B', pattern: '(?=b)c' },
        ],
      },
      /^custom\[1\]\.pattern: /,
    ],
    [{ custom: [{ label: 'A', pattern: '(a' }] }, /^custom\[0\]\.pattern: /],
    [{ custom: [{ label: 'A', pattern: 'a*' }] }, /^custom\[0\]\.pattern: .*empty/],
    [{ custom: [{ label: 'A', pattern: 'a{1000}{1000}' }] }, /^custom\[0\]\.pattern: /],
    [
      { custom: [{ label: 'A', pattern: '[a-z]{1,400}\\d|z1' }] },
      /^custom\[0\]\.pattern: the pattern has 805 instructions.*must have at most 500/,
    ],
    [
      { custom: Array.from({ length: 6 }, () => ({ label: 'A', pattern: '(?:ab){200}' })) },
      /^custom\[4\]\.pattern: .* must have at most 2000 in all patterns together/,
    ],
    [{ custom: [{ label: 'A', pattern: 'x'.repeat(501) }] }, /^custom.*pattern/],
    [{ custom: [{ label: 'A B', pattern: 'a' }] }, /^custom.*label/],
    [{ custom: Array.from({ length: 21 }, () => ({ label: 'A', pattern: 'a' })) }, /^custom/],
    [{ kinds: ['name'] }, /^kinds/],
    [{ mode: 'mask' }, /^mode/],
    [{ enabled: 'yes' }, /^enabled/],
    [{ other: 1 }, /^other/],
  ])('a PII policy of %j is invalid_request naming the field', async (body, detail) => {
    const answer = await put(body);
    expect([answer.status, answer.json?.['code'], answer.json?.['detail']]).toEqual([
      422,
      'invalid_request',
      expect.stringMatching(detail) as string,
    ]);
    const viaPolicy = await call(api, 'PUT', `/orgs/${ORG}/policy`, { headers: await asOwner(), body: { pii: body } });
    expect([viaPolicy.status, String(viaPolicy.json?.['detail']).startsWith('pii.')]).toEqual([422, true]);
    expect(dataOf(await call(api, 'GET', PATH))).toEqual(DEFAULTS);
  });
});

test("from a policy's change on, rows in all tables contain nothing that it redacts, by running workers and by later ones", async () => {
  expect((await stored('before@example.com')).rows).toContain('before@example.com');
  await put({ enabled: true, custom: [{ label: 'EMPLOYEE', pattern: 'EMP-\\d{6}' }] });
  const { trace_id, rows } = await storedSo('during@example.com', (text) => !text.includes('during@'));
  expect(rows).toContain('[EMAIL]');
  expect(rows).toContain('[EMPLOYEE]');
  expect(rows).not.toContain('EMP-123456');
  const tree = dataOf(await call(api, 'GET', `/v1/traces/${trace_id}/tree`))['spans'] as Record<string, unknown>[];
  expect(tree[0]).toMatchObject({
    name: 'mail to [EMAIL]',
    prompt: 'write to [EMAIL], [EMPLOYEE]',
    response: 'done: [EMAIL]',
    tags: ['[EMAIL]'],
  });

  worker.kill('SIGKILL');
  await worker.exited;
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
  // Sent while no worker runs, so it is the first event that the new worker lands.
  const later = await stored('later@example.com');
  expect(later.rows).not.toContain('later@example.com');

  for (const word of ['during', 'later']) {
    const found = await call(api, 'GET', `/v1/traces?search=${word}`);
    expect([found.status, found.json?.['data']]).toEqual([200, []]);
  }
  const byUser = await call(api, 'GET', '/v1/traces?user_id=later@example.com');
  expect([byUser.status, byUser.json?.['data']]).toEqual([200, []]);
  await put(DEFAULTS);
  await storedSo('after@example.com', (text) => text.includes('after@example.com'));
});

test('hashes keep equal values equal within the organization, and reveal nothing of them', async () => {
  await put({ enabled: true, mode: 'hash' });
  const hashOf = (rows: string): string => /\[EMAIL:[0-9a-f]{12}\]/.exec(rows)?.[0] ?? '';
  const one = await storedSo('one@example.com', (rows) => hashOf(rows) !== '' && !rows.includes('one@'));
  const again = await stored('One@Example.com');
  const other = await stored('other@example.com');
  expect(hashOf(again.rows)).toBe(hashOf(one.rows));
  expect(hashOf(other.rows)).not.toBe(hashOf(one.rows));
  const byUser = await call(api, 'GET', `/v1/traces?user_id=${encodeURIComponent(hashOf(one.rows))}`);
  const ids = (byUser.json?.['data'] as { trace_id: string }[]).map(({ trace_id }) => trace_id);
  expect(ids).toEqual(expect.arrayContaining([one.trace_id, again.trace_id]));
  expect(ids).not.toContain(other.trace_id);
  // The hash key survives a switch from hashing to redaction and back.
  await put({ mode: 'redact' });
  await storedSo('gone@example.com', (rows) => rows.includes('[EMAIL]'));
  await put({ mode: 'hash' });
  expect(hashOf((await storedSo('one@example.com', (rows) => hashOf(rows) !== '')).rows)).toBe(hashOf(one.rows));
  expect((await call(api, 'GET', PATH)).text).not.toContain('hash_key');
  await put(DEFAULTS);
  await storedSo('after@example.com', (text) => text.includes('after@example.com'));
});

test("an anonymised export uses the policy's kinds and labels, or all kinds where none is set", async () => {
  const { trace_id } = await storedSo('ann@example.com', (rows) => rows.includes('ann@example.com'));
  const exported = async () =>
    (await call(api, 'POST', `/v1/traces/${trace_id}/export`, { body: { anonymize_pii: true } })).text;
  const plain = await exported();
  expect(plain).not.toContain('ann@example.com');
  expect(plain).toContain('EMP-123456');
  await put({ kinds: ['ip'], custom: [{ label: 'EMPLOYEE', pattern: 'EMP-\\d{6}' }], mode: 'hash' });
  const ofPolicy = await exported();
  expect(ofPolicy).toContain('write to ann@example.com, [EMPLOYEE]');
  await put(DEFAULTS);
});

test('a stored pattern that is too slow on a text has the whole text replaced, at ingest and in exports', async () => {
  // Larger than the API accepts, as if an older version had stored it. On the noise, the pattern
  // takes the engine many seconds.
  const custom = [{ label: 'SLOW', pattern: 'a[ab]{400}[cd]|z1' }];
  const noise = noiseOfTwo(1_000_000);
  const attributes = { prompt: `${noise} 1`, response: 'call z1', user_id: 'u1' };
  const { trace_id, rows: plain } = await stored('slow', { attributes });
  expect(plain.includes(noise)).toBe(true);

  const key = orgKey(ORG);
  const record = { enabled: true, kinds: ['email'], custom, mode: 'redact', hash_key: null };
  await (await api.log.bucket('pii_policies')).put(key, JSON.stringify(record));
  await eventually(
    async () => JSON.stringify(dataOf(await call(api, 'GET', PATH))['custom']) === JSON.stringify(custom),
    {
      what: 'the policy in the API',
    },
  );
  await storedSo('slow@example.com', (text) => !text.includes('slow@'));
  const { rows } = await stored('slow@example.com', { attributes });
  expect([rows.includes(noise.slice(0, 1000)), rows.includes('[REDACTED]'), rows.includes('call [SLOW]')]).toEqual([
    false,
    true,
    true,
  ]);

  const exported = call(api, 'POST', `/v1/traces/${trace_id}/export`, { body: { anonymize_pii: true } });
  expect((await call(api, 'GET', PATH)).status).toBe(200);
  const { text } = await exported;
  expect([
    text.includes(noise.slice(0, 1000)),
    text.includes('"prompt":"[REDACTED]"'),
    text.includes('call [SLOW]'),
  ]).toEqual([false, true, true]);
  await put(DEFAULTS);
  await storedSo('after@example.com', (shown) => shown.includes('after@example.com'));
});

test('one redaction in a thousand is reported as pii.match, once, without what was found', async () => {
  await put({ enabled: true });
  await storedSo('warm@example.com', (rows) => !rows.includes('warm@'));
  const base = {
    name: 'step',
    outcome: 'success',
    duration_ms: 1,
    trace_id: 'told',
    attributes: { note: 'told@example.com, 10.0.0.1' },
  };
  const spans = Array.from({ length: 20_000 }, (_, index) => ({ ...base, span_id: `s-${index}` }));
  const told = spans.find((event) => isReported(eventHex(JSON.stringify(event)), event.span_id));
  const silent = spans.find((event) => !isReported(eventHex(JSON.stringify(event)), event.span_id));
  for (const body of [{ events: [told, silent] }, { events: [told] }])
    expect((await call(api, 'POST', `${INGEST}/custom`, { body })).status).toBe(200);
  let matches: ServiceEvent[] = [];
  await eventually(
    async () => {
      const events = await eventsOf(api);
      matches = events.filter(({ event, payload }) => event === 'pii.match' && payload.includes('"told"'));
      return (
        matches.length > 0 &&
        events.some(({ event, payload }) => event === 'trace.completed' && payload.includes('"told"'))
      );
    },
    { what: 'the event' },
  );
  expect(matches.map(({ payload }) => JSON.parse(payload) as unknown)).toEqual([
    { event: 'pii.match', org_id: ORG, trace_id: 'told', span_id: told?.span_id, kinds: ['email', 'ip'] },
  ]);
  await put(DEFAULTS);
});

test('changes of the policy are in the audit log, without the key of hashes', async () => {
  await put({ mode: 'hash', enabled: true });
  await put(DEFAULTS);
  let text = '';
  await eventually(
    async () => {
      text = (await call(api, 'GET', `/orgs/${ORG}/audit-log?action=pii_policy.update`)).text;
      return text.includes('"mode":{"from":"redact","to":"hash"}');
    },
    { what: 'the audit record' },
  );
  expect(text).toContain('"target":{"type":"pii_policy"');
  expect(text).not.toContain('hash_key');
});

async function eventsOf({ log }: TestApi): Promise<ServiceEvent[]> {
  const { state } = await log.jsm.streams.info(EVENTS_STREAM);
  const events: ServiceEvent[] = [];
  if (state.messages === 0) return events;
  const consumer = await log.js.consumers.get(EVENTS_STREAM, { deliver_policy: DeliverPolicy.All });
  const messages = await consumer.consume();
  for await (const message of messages) {
    events.push(...serviceEventsCodec.decode(message.data, message.headers?.get(FINGERPRINT_HEADER)).events);
    if (message.seq >= state.last_seq) break;
  }
  messages.stop();
  return events;
}
