// Rate limits over HTTP: which requests count against which bucket, what the headers contain,
// changes of plan, a second process, and the limits that apply while NATS is down. The
// organizations' buckets refill by one token per minute, so counts do not depend on the speed of
// the test.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { INGEST_STREAM } from '../../../schemas/streams.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, anEvent, type Answer, call, INGEST, startTestApi, type TestApi } from './an_api.ts';

const APP_PER_MINUTE = 20;
const slow = (burst: number) => ({ ingest_per_minute: 1, api_per_minute: 1, burst });
const operator = { 'X-Org-Api-Key': '', 'X-Org-Id': '', Authorization: `Bearer ${ADMIN_TOKEN}` };

let nats: TestNats;
let one: TestApi;
let two: TestApi;
let serial = 0;

beforeAll(async () => {
  nats = await startTestNats();
  one = await startTestApi({ natsUrl: nats.url, appPerMinute: APP_PER_MINUTE });
  two = await startTestApi({ natsUrl: nats.url, appPerMinute: APP_PER_MINUTE });
});

afterAll(async () => {
  await one.close();
  await two.close();
  await nats.remove();
});

interface Tenant {
  org: string;
  headers: Record<string, string>;
}

/** Creates a new organization with a key of every scope. */
async function aTenant(plan: Record<string, unknown>): Promise<Tenant> {
  const org = `org_limits_${++serial}`;
  const owner = { user_id: 'user_1', email: 'owner@example.com' };
  const made = await call(one, 'POST', '/admin/orgs', {
    body: { org_id: org, name: org, owner, ...plan },
    headers: operator,
  });
  expect(made.status).toBe(201);
  const key = await call(one, 'POST', `/admin/orgs/${org}/api-keys`, {
    body: { name: 'k', scopes: ['*'] },
    headers: operator,
  });
  const headers = { 'X-Org-Api-Key': String(key.json?.['raw_key']), 'X-Org-Id': org };
  // Waits until both processes know the organization and its key. The probe spends no token: an
  // operator route answers 403 to a known key and 401 to an unknown one.
  for (const api of [one, two])
    await eventually(
      async () =>
        (await call(api, 'GET', '/admin/orgs', { headers })).status === 403 &&
        (await call(api, 'GET', '/admin/orgs?limit=200', { headers: operator })).text.includes(`"${org}"`),
      { what: 'the org and its key' },
    );
  return { org, headers };
}

const limited = (burst: number) => aTenant({ plan_name: 'enterprise', rate_limits: slow(burst) });
const getOrg = ({ org, headers }: Tenant, api = one) => call(api, 'GET', `/orgs/${org}`, { headers });
const ingest = ({ org, headers }: Tenant, format: string, body: unknown, api = one) =>
  call(api, 'POST', `/orgs/${org}/ingest/${format}`, { headers, body, once: true });
/**
 * Sends requests to a process until it rejects one. Returns the number of requests granted before
 * that.
 */
async function grantedUntilRefused(tenant: Tenant, api: TestApi): Promise<number> {
  for (let granted = 0; ; granted++) {
    const { status } = await getOrg(tenant, api);
    if (status === 429) return granted;
    expect(status).toBe(200);
  }
}
/** Most tokens that refill a bucket during a test, which takes minutes. */
const REFILLED_MAX = 5;
/**
 * Sends requests to a process until its answers show that it also counts the requests granted by
 * the other process.
 *
 * @param left tokens left in the shared bucket before the first of these requests
 * @returns the number of requests that the process granted meanwhile
 */
async function untilTold(tenant: Tenant, api: TestApi, left: number): Promise<number> {
  let granted = 0;
  await eventually(
    async () => {
      granted += 1;
      return Number(rateOf(await getOrg(tenant, api))[1]) <= left - granted + REFILLED_MAX;
    },
    { what: 'what was granted elsewhere' },
  );
  return granted;
}
const rateOf = ({ headers }: Answer) => [
  headers.get('ratelimit-limit'),
  headers.get('ratelimit-remaining'),
  headers.get('ratelimit-reset'),
  headers.get('retry-after'),
];
const appEvents = (count: number) => ({
  events: Array.from({ length: count }, () => ({
    event_type: 'page_view',
    session_id: 's',
    attributes: { n: ++serial },
  })),
});
const storedMessages = async () => (await one.log.jsm.streams.info(INGEST_STREAM)).state.messages;

describe('one process', () => {
  test('an answer states the remaining requests; beyond the burst it is 429 with Retry-After', async () => {
    const tenant = await limited(3);
    const answers = [await getOrg(tenant), await getOrg(tenant), await getOrg(tenant), await getOrg(tenant)];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    expect(answers.map((answer) => rateOf(answer).slice(0, 2))).toEqual([
      ['1', '2'],
      ['1', '1'],
      ['1', '0'],
      ['1', '0'],
    ]);
    const refused = answers[3];
    expect(refused?.json).toMatchObject({ code: 'rate_limited', request_id: refused?.headers.get('x-request-id') });
    const [, , reset, retry] = rateOf(refused as Answer);
    expect(Number(retry)).toBeGreaterThan(0);
    expect(Number(retry)).toBeLessThanOrEqual(60);
    expect(Number(reset)).toBeGreaterThan(Number(retry));
  });

  test('a known caller without permission counts like any other', async () => {
    const tenant = await limited(2);
    for (const status of [403, 403, 429])
      expect((await call(one, 'GET', '/orgs/org_of_others', { headers: tenant.headers })).status).toBe(status);
    for (const status of [403, 403, 429])
      expect(
        (await call(one, 'POST', '/orgs/org_of_others/ingest/custom', { headers: tenant.headers, body: anEvent() }))
          .status,
      ).toBe(status);
  });

  test('ingest has a bucket of its own: when it is empty the API still answers, and the other way round', async () => {
    const tenant = await limited(3);
    for (const status of [200, 200, 200, 429])
      expect((await ingest(tenant, 'custom', anEvent({ n: ++serial }))).status).toBe(status);
    expect(rateOf(await getOrg(tenant)).slice(0, 2)).toEqual(['1', '2']);
    const other = await limited(3);
    for (const status of [200, 200, 200, 429]) expect((await getOrg(other)).status).toBe(status);
    const ok = await ingest(other, 'custom', anEvent({ n: ++serial }));
    expect([ok.status, ...rateOf(ok).slice(0, 2)]).toEqual([200, '1', '2']);
  });

  test('a rejected ingest stores nothing, its body is drained, and the answer has the shape of errors', async () => {
    const tenant = await limited(1);
    expect((await ingest(tenant, 'custom', anEvent({ n: ++serial }))).status).toBe(200);
    const before = await storedMessages();
    const refused = await ingest(tenant, 'custom', { events: Array.from({ length: 900 }, (_, n) => anEvent({ n })) });
    expect([refused.status, refused.json?.['code'], refused.json?.['request_id']]).toEqual([
      429,
      'rate_limited',
      refused.headers.get('x-request-id'),
    ]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await storedMessages()).toBe(before);
  });

  test('a 4xx after authentication counts; a request without a credential of the tenant does not', async () => {
    const tenant = await limited(3);
    const bad = await ingest(tenant, 'custom', { no: 'event' });
    expect([bad.status, ...rateOf(bad).slice(0, 2)]).toEqual([422, '1', '2']);
    const unknown = await ingest(tenant, 'telegram', {});
    expect([unknown.status, ...rateOf(unknown).slice(0, 2)]).toEqual([422, '1', '1']);
    for (const headers of [
      { 'X-Org-Api-Key': 'sk_svc_unknownunknownunknown', 'X-Org-Id': tenant.org },
      { 'X-Org-Id': tenant.org },
      {},
    ]) {
      const answer = await call(one, 'POST', `/orgs/${tenant.org}/ingest/custom`, { headers, body: anEvent() });
      expect([401, 403]).toContain(answer.status);
      expect(rateOf(answer)).toEqual([null, null, null, null]);
    }
    const last = await ingest(tenant, 'custom', anEvent({ n: ++serial }));
    expect([last.status, ...rateOf(last).slice(0, 2)]).toEqual([200, '1', '0']);
  });

  test('an unlimited tenant gets no rate headers; its app events have the limit of every tenant', async () => {
    for (const answer of [
      await call(one, 'GET', INGEST.replace('/ingest', '')),
      await call(one, 'POST', `${INGEST}/custom`, { body: anEvent() }),
    ])
      expect([answer.status, ...rateOf(answer)]).toEqual([200, null, null, null, null]);
    const app = await call(one, 'POST', `${INGEST}/app`, { body: appEvents(1) });
    expect([app.status, ...rateOf(app).slice(0, 2)]).toEqual([200, String(APP_PER_MINUTE), String(APP_PER_MINUTE - 1)]);
  });

  test('app ingest counts events, not requests, and takes nothing from ingest', async () => {
    const tenant = await limited(3);
    const first = await ingest(tenant, 'app', appEvents(15));
    expect([first.status, ...rateOf(first).slice(0, 2)]).toEqual([200, String(APP_PER_MINUTE), '5']);
    const before = await storedMessages();
    const refused = await ingest(tenant, 'app', appEvents(15));
    expect([refused.status, refused.json?.['code'], refused.headers.get('ratelimit-limit')]).toEqual([
      429,
      'rate_limited',
      String(APP_PER_MINUTE),
    ]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(await storedMessages()).toBe(before);
    const bad = await ingest(tenant, 'app', { events: [{ no: 'type' }] });
    expect([bad.status, bad.json?.['code'], bad.headers.get('ratelimit-limit')]).toEqual([
      422,
      'decode_failed',
      String(APP_PER_MINUTE),
    ]);
    const custom = await ingest(tenant, 'custom', anEvent({ n: ++serial }));
    expect([custom.status, ...rateOf(custom).slice(0, 2)]).toEqual([200, '1', '2']);
  });

  test('an app batch of more events than a minute permits passes when the bucket is full', async () => {
    const tenant = await limited(3);
    const large = await ingest(tenant, 'app', appEvents(2 * APP_PER_MINUTE));
    expect([large.status, ...rateOf(large).slice(0, 3)]).toEqual([200, String(APP_PER_MINUTE), '0', '120']);
    const next = await ingest(tenant, 'app', appEvents(1));
    expect(next.status).toBe(429);
    // The wait is longer than an empty bucket needs to refill one event, so the bucket is in debt.
    expect(Number(next.headers.get('retry-after'))).toBeGreaterThan(60 / APP_PER_MINUTE);
  });

  test('a change of plan takes effect at once', async () => {
    const tenant = await limited(2);
    for (const status of [200, 200, 429]) expect((await getOrg(tenant)).status).toBe(status);
    const patch = async (body: Record<string, unknown>) => {
      expect((await call(one, 'PATCH', `/admin/orgs/${tenant.org}`, { headers: operator, body })).status).toBe(200);
    };
    await patch({ plan_name: 'pro', rate_limits: null });
    const pro = await getOrg(tenant);
    expect([pro.status, rateOf(pro)[0]]).toEqual([200, '1500']);
    expect(Number(rateOf(pro)[1])).toBeGreaterThanOrEqual(197);
    await patch({ plan_name: 'enterprise' });
    expect(rateOf(await getOrg(tenant))).toEqual([null, null, null, null]);
  });
});

describe('several processes', () => {
  test('processes share what each of them grants', async () => {
    const burst = 500;
    const tenant = await limited(burst);
    for (let i = 0; i < 70; i++) expect((await getOrg(tenant, one)).status).toBe(200);
    const before = await untilTold(tenant, two, burst - 70);
    for (let i = 0; i < 70; i++) expect((await getOrg(tenant, two)).status).toBe(200);
    await untilTold(tenant, one, burst - 140 - before);
  });

  test('a process that starts knows what the others granted before', async () => {
    const tenant = await limited(5);
    for (const status of [200, 200, 200, 200, 200, 429]) expect((await getOrg(tenant)).status).toBe(status);
    // On a busy machine the other processes' answers may arrive after a starting process has
    // stopped waiting for them.
    await eventually(async () => {
      const late = await startTestApi({ natsUrl: nats.url, appPerMinute: APP_PER_MINUTE });
      try {
        return (await getOrg(tenant, late)).status === 429;
      } finally {
        await late.close();
      }
    });
  });
});

test('while NATS is away each process limits by itself and answers from memory; afterwards they share again', async () => {
  const tenant = await limited(400);
  await nats.stop();
  try {
    for (const api of [one, two])
      await eventually(async () => (await call(api, 'GET', '/readyz')).text.includes('"nats":"down"'), {
        what: 'the outage seen',
      });
    expect(await grantedUntilRefused(tenant, one)).toBe(400);
    const ofTwo = await getOrg(tenant, two);
    expect([ofTwo.status, ...rateOf(ofTwo).slice(0, 2)]).toEqual([200, '1', '399']);
    const lost = await ingest(tenant, 'custom', anEvent());
    expect([lost.status, lost.json?.['code'], rateOf(lost)[0]]).toEqual([502, 'upstream_unavailable', '1']);
  } finally {
    await nats.start();
  }
  for (const api of [one, two])
    await eventually(async () => (await call(api, 'GET', '/readyz')).text.includes('"nats":"ok"'), {
      what: 'the connection',
    });
  // The second process has 399 tokens left by its own count, and none by the count that the first
  // process now publishes. The test sends it ten requests per second.
  let granted = 0;
  await eventually(async () => {
    const { status } = await getOrg(tenant, two);
    if (status === 200) granted += 1;
    return status === 429;
  });
  expect(granted).toBeLessThan(399);
});
