// The store of Idempotency-Keys at its limits: full, truncated, disconnected, and with dead holders
// and deleted claims.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { Idempotency, LOCK_MS, PACKED_BYTES_MAX } from '../../../api/http/idempotency.ts';
import { KeyedStore, placeOf, Running, RUNNING_TENANT_MAX, TRIM_EVERY } from '../../../api/http/keyed_store.ts';
import { IngestOnce } from '../../../api/intake/ingest/once.ts';
import { openKeyed } from '../../../api/wiring/keyed.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { anEvent, call, INGEST, KEY, ORG, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let api: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url });
});

afterAll(async () => {
  await api.close();
  await nats.remove();
});

const up = () => true;
const noProblem = () => undefined;
const CHANGED = { changed: true };
/** Store timeout in ms, long enough that a busy machine causes no rejection. */
const PATIENT_MS = 10_000;
type Bucket = 'idempotency' | 'ingest_keys' | 'ingest_claims';

async function storeOf(bucket: Bucket, keep = 1000, onProblem: ReportProblem = noProblem): Promise<KeyedStore> {
  const { log } = api;
  const kv = await log.bucket(bucket);
  return new KeyedStore({
    bucket,
    nc: log.nc,
    kv,
    jsm: log.jsm,
    keep,
    storeMsMax: PATIENT_MS,
    connected: up,
    onProblem,
  });
}

const keyedCall = (key: string, body: unknown, path = `${INGEST}/custom`) =>
  call(api, 'POST', path, { body, headers: { 'Idempotency-Key': key } });

describe('the lock of a route', () => {
  const aRequest = () => ({ tenant: ORG, endpoint: 'POST /x', key: randomUUID(), body: 'b' });

  test("a route's lock of a dead holder is taken over after its deadline, not before", async () => {
    let now = 1_000_000;
    const problems: string[] = [];
    const store = await storeOf('idempotency');
    const make = () =>
      new Idempotency({ store, now: () => now, onProblem: (_, cause) => problems.push(String(cause)) });
    const request = aRequest();
    const dead = await make().begin(request);
    await expect(make().begin(request)).rejects.toMatchObject({ code: 'idempotency_in_progress' });
    now += LOCK_MS + 1;
    const taken = await make().begin(request);
    if (!('lock' in taken) || !('lock' in dead)) throw new Error('no lock');
    await taken.lock.keep({ status: 200, body: 'done by the second' }, CHANGED);
    await dead.lock.keep({ status: 200, body: 'too late' }, CHANGED);
    expect(problems).toEqual([expect.stringContaining('taken over')]);
    await expect(make().begin(request)).resolves.toEqual({ replay: { status: 200, body: 'done by the second' } });
  });

  test('a lock that was trimmed away while its holder ran leaves the key free, and the holder reports that', async () => {
    const problems: string[] = [];
    const store = await storeOf('idempotency');
    const make = () => new Idempotency({ store, now: Date.now, onProblem: (_, cause) => problems.push(String(cause)) });
    const request = aRequest();
    const first = await make().begin(request);
    await api.log.jsm.streams.purge('KV_idempotency', { filter: `$KV.idempotency.${placeOf(ORG, '', '').tenant}.>` });
    const second = await make().begin(request);
    if (!('lock' in first) || !('lock' in second)) throw new Error('no lock');
    await first.lock.keep({ status: 200, body: 'of the first' }, CHANGED);
    expect(problems).toEqual([expect.stringContaining('trimmed')]);
    await second.lock.keep({ status: 200, body: 'of the second' }, CHANGED);
    await expect(make().begin(request)).resolves.toEqual({ replay: { status: 200, body: 'of the second' } });
  });

  test('a sealed answer opens for its own caller only', async () => {
    const idempotency = new Idempotency({ store: await storeOf('idempotency'), now: Date.now, onProblem: noProblem });
    const request = { ...aRequest(), sealWith: KEY };
    const begun = await idempotency.begin(request);
    if (!('lock' in begun)) throw new Error('no lock');
    await begun.lock.keep({ status: 201, body: '{"raw_key":"sk_svc_secret"}' }, CHANGED);
    await expect(idempotency.begin(request)).resolves.toEqual({
      replay: { status: 201, body: '{"raw_key":"sk_svc_secret"}' },
    });
    await expect(idempotency.begin({ ...request, sealWith: 'another' })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
  });

  test('an answer is kept up to a size; beyond it a repeated change is rejected, and a repeated read runs again', async () => {
    const idempotency = new Idempotency({ store: await storeOf('idempotency'), now: Date.now, onProblem: noProblem });
    const after = async (length: number, changed: boolean) => {
      const request = aRequest();
      const begun = await idempotency.begin(request);
      if (!('lock' in begun)) throw new Error('no lock');
      await begun.lock.keep({ status: 200, body: 'x'.repeat(length) }, { changed });
      return await idempotency.begin(request);
    };
    expect(await after(PACKED_BYTES_MAX, true)).toEqual({
      replay: { status: 200, body: 'x'.repeat(PACKED_BYTES_MAX) },
    });
    await expect(after(PACKED_BYTES_MAX + 1, true)).rejects.toMatchObject({ code: 'conflict' });
    expect(Object.keys(await after(PACKED_BYTES_MAX + 1, false))).toEqual(['lock']);
  });

  test('a mark stands for one body, in every process', async () => {
    const make = async () =>
      new Idempotency({ store: await storeOf('idempotency'), now: Date.now, onProblem: noProblem });
    const request = aRequest();
    const free = await (await make()).mark(request);
    await (await make()).mark(request);
    await expect((await make()).mark({ ...request, body: 'c' })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
    await free();
    await (await make()).mark({ ...request, body: 'c' });
    await expect((await make()).mark(request)).rejects.toMatchObject({ code: 'idempotency_key_reused' });
  });

  test('a keyed request without a connection is rejected at once', async () => {
    const store = new KeyedStore({
      bucket: 'idempotency',
      nc: api.log.nc,
      kv: await api.log.bucket('idempotency'),
      jsm: api.log.jsm,
      keep: 1,
      connected: () => false,
      onProblem: noProblem,
    });
    const idempotency = new Idempotency({ store, now: Date.now, onProblem: noProblem });
    await expect(idempotency.begin(aRequest())).rejects.toMatchObject({ code: 'upstream_unavailable' });
    const once = new IngestOnce({ claims: store, outcomes: store, onProblem: noProblem });
    await expect(once.begin({ ...aRequest(), body: Buffer.from('b') })).rejects.toMatchObject({
      code: 'upstream_unavailable',
    });
  });
});

describe('a claim of ingest', () => {
  const open = async () =>
    new IngestOnce({
      claims: await storeOf('ingest_claims'),
      outcomes: await storeOf('ingest_keys'),
      onProblem: noProblem,
    });
  const loseClaims = () => api.log.jsm.streams.purge('KV_ingest_claims');
  const aRequest = (body = 'b') => ({
    tenant: `org:${ORG}`,
    endpoint: 'POST ingest/custom',
    key: randomUUID(),
    body: Buffer.from(body),
  });
  const mine = (request_id: string) => ({ request_id, at: 1 });

  test('a claim of ingest is exclusive, and released by a failure', async () => {
    const [one, two] = [await open(), await open()];
    const request = aRequest();
    const first = await one.begin(request);
    await expect(two.begin(request)).rejects.toMatchObject({ code: 'idempotency_in_progress' });
    await expect(one.begin(request)).rejects.toMatchObject({ code: 'idempotency_in_progress' });
    await expect(two.begin({ ...request, body: Buffer.from('c') })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
    await expect(one.begin({ ...request, body: Buffer.from('c') })).rejects.toMatchObject({
      code: 'idempotency_key_reused',
    });
    if (!('claim' in first)) throw new Error('no claim');
    await first.claim.release();
    const second = await two.begin({ ...request, body: Buffer.from('c') });
    if (!('claim' in second)) throw new Error('no claim');
    await second.claim.keep(mine('req_2'), 1000);
    await expect(one.begin(request)).rejects.toMatchObject({ code: 'idempotency_key_reused' });
  });

  test('when a claim expires while its request still runs, both requests get the outcome that was kept first, and another body is rejected', async () => {
    const [one, two, three] = [await open(), await open(), await open()];
    const request = aRequest();
    const begun = [await one.begin(request)];
    await loseClaims();
    begun.push(await two.begin(request));
    await loseClaims();
    begun.push(await three.begin({ ...request, body: Buffer.from('c') }));
    const [first, second, other] = begun.map((each) => ('claim' in each ? each.claim : null));
    expect(await second?.keep(mine('req_2'), 1000)).toEqual(mine('req_2'));
    expect(await first?.keep(mine('req_1'), 1000)).toMatchObject(mine('req_2'));
    await expect(other?.keep(mine('req_3'), 1000)).rejects.toMatchObject({ code: 'idempotency_key_reused' });
    expect(await one.begin(request)).toMatchObject({ replay: mine('req_2') });
  });

  test('a claim of a dead process expires by itself', async () => {
    const request = aRequest();
    await (await open()).begin(request);
    const another = await open();
    await expect(another.begin(request)).rejects.toMatchObject({ code: 'idempotency_in_progress' });
    await eventually(async () => 'claim' in (await another.begin(request)), { what: 'the key to be free again' });
  });
});

describe('bounds', () => {
  test('a tenant keeps its newest keys, whatever other tenants do', async () => {
    const keep = 50;
    const store = await storeOf('ingest_keys', keep);
    const busy = Array.from({ length: 2 * TRIM_EVERY }, () => placeOf('org:busy', 'POST x', randomUUID()));
    const quiet = Array.from({ length: 5 }, () => placeOf('org:quiet', 'POST x', randomUUID()));
    for (const place of quiet) await store.write(place, 'q', 0);
    const count = async (place = busy[0]) => {
      const filter = `$KV.ingest_keys.${place?.tenant ?? ''}.>`;
      return Object.keys(
        (await api.log.jsm.streams.info('KV_ingest_keys', { subjects_filter: filter })).state.subjects ?? {},
      ).length;
    };
    for (const place of busy) await store.write(place, 'b', 0);
    await eventually(async () => (await count()) < keep + TRIM_EVERY, { what: 'the trim' });
    expect(await count()).toBeGreaterThanOrEqual(keep);
    for (const place of busy.slice(-keep)) expect((await store.read(place))?.text).toBe('b');
    expect(await store.read(busy[0] ?? placeOf('', '', ''))).toBeNull();
    expect(await count(quiet[0])).toBe(quiet.length);
  });

  test('a failed trim is logged and tried again later', async () => {
    const problems: string[] = [];
    const failing = new KeyedStore({
      bucket: 'ingest_keys',
      nc: api.log.nc,
      kv: await api.log.bucket('ingest_keys'),
      jsm: {
        streams: Object.assign(Object.create(api.log.jsm.streams) as typeof api.log.jsm.streams, {
          purge: () => Promise.reject(new Error('no')),
        }),
      },
      keep: 1,
      connected: up,
      onProblem: (problem) => problems.push(problem),
    });
    for (let n = 0; n < 2 * TRIM_EVERY; n++) await failing.write(placeOf('org:busy', 'POST y', String(n)), 'b', 0);
    expect(problems).toHaveLength(2);
  });

  test('a tenant may run a bounded number of keyed requests at once, which does not limit another tenant', () => {
    const running = new Running();
    const leaves = Array.from({ length: RUNNING_TENANT_MAX }, () =>
      running.enter(placeOf('a', 'x', randomUUID()), 'f'),
    );
    expect(() => running.enter(placeOf('a', 'x', randomUUID()), 'f')).toThrow(
      expect.objectContaining({ code: 'rate_limited' }) as Error,
    );
    running.enter(placeOf('b', 'x', randomUUID()), 'f')();
    leaves[0]?.();
    leaves[0]?.();
    running.enter(placeOf('a', 'x', randomUUID()), 'f');
    expect(() => running.enter(placeOf('a', 'x', randomUUID()), 'f')).toThrow(
      expect.objectContaining({ code: 'rate_limited' }) as Error,
    );
  });

  test('when the answers are full, requests are rejected before any work is done; ingest continues, with a key and without', async () => {
    const { jsm } = api.log;
    const limits = await Promise.all(
      ['KV_idempotency', 'KV_ingest_keys'].map(async (name) => (await jsm.streams.info(name)).config),
    );
    await jsm.streams.purge('KV_ingest_keys');
    await jsm.streams.update('KV_ingest_keys', { max_bytes: 2000 });
    await jsm.streams.update('KV_idempotency', {
      max_bytes: (await jsm.streams.info('KV_idempotency')).state.bytes + 1000,
    });

    const path = `/orgs/${ORG}/api-keys`;
    const makeKey = () => keyedCall(randomUUID(), { name: 'k', scopes: ['traces:read'] }, path);
    const made = async () => ((await call(api, 'GET', path)).json?.['meta'] as { total: number }).total;
    await eventually(async () => (await makeKey()).status === 429, { what: 'the bucket to be full' });
    const before = await made();
    const refused = await makeKey();
    expect([refused.status, refused.json?.['code'], refused.headers.get('retry-after')]).toEqual([
      429,
      'rate_limited',
      '60',
    ]);
    expect(refused.json?.['detail']).toContain('Idempotency-Key');
    expect(await made()).toBe(before);

    const keys = Array.from({ length: 20 }, () => randomUUID());
    for (const key of keys) expect((await keyedCall(key, anEvent({ name: key }))).status).toBe(200);
    const replayed = async (key = '') =>
      (await keyedCall(key, anEvent({ name: key }))).headers.get('idempotency-replayed');
    expect([await replayed(keys.at(-1)), await replayed(keys[0])]).toEqual(['true', null]);
    expect((await call(api, 'POST', `${INGEST}/custom`, { body: anEvent() })).status).toBe(200);

    for (const { name, max_bytes } of limits) await jsm.streams.update(name, { max_bytes });
    expect((await makeKey()).status).toBe(201);
  });

  test('a bucket created before the bounds existed gets them at the next start', async () => {
    const { jsm } = api.log;
    const bounds = async () => {
      const { config } = await jsm.streams.info('KV_ingest_keys');
      return [config.max_bytes, config.discard];
    };
    const now = await bounds();
    await jsm.streams.update('KV_ingest_keys', { max_bytes: -1 });
    expect(await bounds()).not.toEqual(now);
    const another = await startTestApi({ natsUrl: nats.url });
    await another.close();
    expect(await bounds()).toEqual(now);
  });
});

test('kept answers survive a killed nats-server; claims need not', async () => {
  const key = randomUUID();
  const first = await keyedCall(key, anEvent({ name: key }));
  expect(first.status).toBe(200);
  const { once } = await openKeyed({ log: api.log, tracked: { connected: true }, now: Date.now, onProblem: noProblem });
  const running = { tenant: `org:${ORG}`, endpoint: 'POST ingest/custom', key: randomUUID(), body: Buffer.from('b') };
  await once.begin(running);
  await nats.kill();
  const down = await keyedCall(randomUUID(), anEvent());
  expect([down.status, down.json?.['code']]).toEqual([502, 'upstream_unavailable']);
  await nats.start();
  await eventually(async () => (await keyedCall(randomUUID(), anEvent({ name: key }))).status === 200, {
    what: 'the connection',
  });
  const again = await keyedCall(key, anEvent({ name: key }));
  expect([again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([200, first.text, 'true']);
  const { once: other } = await openKeyed({
    log: api.log,
    tracked: { connected: true },
    now: Date.now,
    onProblem: noProblem,
  });
  expect(Object.keys(await other.begin(running))).toEqual(['claim']);
});
