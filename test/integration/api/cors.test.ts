// CORS headers for pages of other origins. Ingest of app events and OTLP answers every origin; all
// other operations answer only the origins that the operator lists; no other origin may use a
// session cookie. Also tests keys in the query string of a beacon.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { makeKey, makeOrg } from '../a_tenant.ts';
import { type Operation, operationsOf, pathOf } from './a_cast.ts';
import { anEvent, call, INGEST, KEY, ORG, startTestApi, type TestApi, tokenOf } from './an_api.ts';

const ANY = 'https://shop.example';
const LISTED = 'https://portal.example';
const OPEN = [
  `${INGEST}/app`,
  ...['/v1/otlp/v1', '/v1', '/api/public/otel/v1'].flatMap((root) => [
    `${root}/traces`,
    `${root}/logs`,
    `${root}/metrics`,
  ]),
];
const BATCH = { events: [{ event_type: 'page_view', session_id: 's1' }] };

let nats: TestNats;
let models: ModelServer;
let api: TestApi;
/** An API without SERVICE_CORS_ORIGINS. */
let closed: TestApi;
let operations: Operation[];
/** A key whose only scope is ingest:write. */
let writeKey: string;

const rawKey = async (scopes: string[]) => (await makeKey(api, ORG, scopes))['X-Org-Api-Key'] ?? '';

beforeAll(async () => {
  nats = await startTestNats();
  models = await startModelServer();
  api = await startTestApi({
    natsUrl: nats.url,
    llmUrl: models.url,
    corsOrigins: ['https://other.example', LISTED],
    bodyBytesMax: 20_000,
  });
  closed = await startTestApi({ natsUrl: nats.url });
  operations = await operationsOf(api);
  writeKey = await rawKey(['ingest:write']);
});
afterAll(async () => {
  await api.close();
  await closed.close();
  await models.close();
  await nats.remove();
});

const preflight = (of: TestApi, path: string, origin: string, method: string): Promise<Response> =>
  fetch(of.url + path, {
    method: 'OPTIONS',
    headers: {
      Origin: origin,
      'Access-Control-Request-Method': method,
      'Access-Control-Request-Headers': 'content-type,x-org-api-key',
    },
  });

/** Returns the CORS headers of an answer; null for each missing header. */
function corsOf({ headers }: { headers: Headers }): {
  origin: string | null;
  credentials: string | null;
  vary: string | null;
} {
  return {
    origin: headers.get('access-control-allow-origin'),
    credentials: headers.get('access-control-allow-credentials'),
    vary: headers.get('vary'),
  };
}

describe('a preflight', () => {
  test('a preflight of any origin is answered for ingest/app and OTLP without a credential', async () => {
    for (const path of [...OPEN, `${INGEST}/app?api_key=x`]) {
      for (const of of [api, closed]) {
        for (const origin of [ANY, LISTED, 'null']) {
          const answer = await preflight(of, path, origin, 'POST');
          expect([path, answer.status, corsOf(answer).origin, corsOf(answer).credentials]).toEqual([
            path,
            204,
            '*',
            null,
          ]);
          expect(answer.headers.get('access-control-allow-methods')).toBe('POST');
          const allowed = answer.headers.get('access-control-allow-headers')?.toLowerCase().split(', ') ?? [];
          expect(allowed).toEqual(
            expect.arrayContaining([
              'authorization',
              'content-type',
              'content-encoding',
              'idempotency-key',
              'x-org-api-key',
              'x-org-id',
              'traceparent',
            ]),
          );
          expect(Number(answer.headers.get('access-control-max-age'))).toBeGreaterThan(0);
          expect(answer.headers.get('vary')).toContain('Origin');
          expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
          expect(await answer.text()).toBe('');
        }
      }
    }
  });

  test('a preflight of a listed origin is answered for every operation, with its origin and without credentials', async () => {
    for (const { method, template } of operations) {
      const path = pathOf(template, { org_id: ORG });
      const answer = await preflight(api, path, LISTED, method);
      const open = OPEN.includes(path) && method === 'POST';
      expect([template, answer.status, corsOf(answer).origin, corsOf(answer).credentials]).toEqual([
        template,
        204,
        open ? '*' : LISTED,
        null,
      ]);
      expect(answer.headers.get('access-control-allow-methods')?.split(', ')).toContain(method);
    }
  });

  test('a preflight of any other origin permits nothing, on any path of an operation', async () => {
    for (const { method, template } of operations) {
      const path = pathOf(template, { org_id: ORG });
      // Below /langsmith what is not supported is 501, whatever the method.
      if ((OPEN.includes(path) && method === 'POST') || path.startsWith('/langsmith/')) continue;
      for (const [of, origin] of [
        [api, ANY],
        [api, 'https://portal.example.evil.example'],
        [api, 'http://portal.example'],
        [api, 'null'],
        [closed, LISTED],
      ] as const) {
        const answer = await preflight(of, path, origin, method);
        expect([template, origin, answer.status, corsOf(answer).origin]).toEqual([template, origin, 405, null]);
      }
    }
  });
});

describe('an answer', () => {
  const events = (of: TestApi, headers: Record<string, string | undefined>, raw?: string) =>
    call(of, 'POST', `${INGEST}/app`, { headers, ...(raw === undefined ? { body: BATCH } : { raw }) });

  test('pages of any origin can read the answers of ingest/app and OTLP, rejections included', async () => {
    const answers = [
      await events(closed, { Origin: ANY }),
      await events(closed, { Origin: ANY, 'X-Org-Api-Key': undefined }),
      await events(closed, { Origin: ANY, 'Content-Type': 'text/xml' }),
      await events(closed, { Origin: ANY }, '{'),
      await events(api, { Origin: ANY }, 'x'.repeat(30_000)),
      await call(closed, 'PUT', `${INGEST}/app`, { headers: { Origin: ANY }, body: {} }),
      await call(closed, 'POST', '/v1/traces', { headers: { Origin: ANY }, body: {} }),
      await call(closed, 'POST', '/v1/otlp/v1/traces', {
        headers: { Origin: ANY, 'X-Org-Api-Key': undefined },
        body: {},
      }),
      await call(closed, 'POST', '/v1/otlp/v1/traces', { headers: { Origin: ANY }, raw: 'x' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 415, 422, 413, 405, 200, 401, 400]);
    for (const answer of answers) {
      expect(corsOf(answer)).toEqual({ origin: '*', credentials: null, vary: 'Origin' });
      const exposed = answer.headers.get('access-control-expose-headers')?.split(', ') ?? [];
      expect(exposed).toEqual(
        expect.arrayContaining([
          'X-Request-Id',
          'Retry-After',
          'RateLimit-Limit',
          'RateLimit-Remaining',
          'RateLimit-Reset',
          'Idempotency-Replayed',
          'X-Service-Trace-Id',
          'X-Service-Span-Id',
        ]),
      );
    }
  });

  /** Large answers are compressed for clients that accept it. */
  const VARY = expect.stringMatching(/^Origin(, Accept-Encoding)?$/) as string;

  test('only pages of listed origins can read the answers of every other operation', async () => {
    for (const { method, template, body } of operations) {
      const path = pathOf(template, { org_id: ORG });
      if ((OPEN.includes(path) && method === 'POST') || template.startsWith('/admin/')) continue;
      const read = async (of: TestApi, origin: string) =>
        corsOf(
          await call(of, method, path, {
            headers: { Origin: origin },
            ...(method === 'GET' || body === undefined ? {} : { body }),
          }),
        );
      expect([template, await read(api, LISTED)]).toEqual([
        template,
        { origin: LISTED, credentials: null, vary: VARY },
      ]);
      expect([template, await read(api, ANY)]).toEqual([template, { origin: null, credentials: null, vary: VARY }]);
    }
    const list = await call(closed, 'GET', '/v1/traces', { headers: { Origin: LISTED } });
    expect(corsOf(list)).toEqual({ origin: null, credentials: null, vary: null });
  });

  test('a listed origin gets the CORS headers with 401, 404, 413, 429, 502 and through the gateway', async () => {
    const from = { Origin: LISTED };
    const org = await makeOrg(api, { plan_name: 'free' });
    const slow = { ...from, ...(await makeKey(api, org, ['*'])) };
    const chat = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
    const answers = [
      await call(api, 'GET', '/v1/prompts', { headers: { ...from, 'X-Org-Api-Key': undefined } }),
      await call(api, 'GET', '/v2/nothing', { headers: from }),
      await call(api, 'POST', '/v1/prompts', { headers: from, raw: 'x'.repeat(30_000) }),
      await call(api, 'GET', '/v1/traces', { headers: from }),
      await call(api, 'GET', '/v1/models', { headers: { ...from, 'X-Org-Api-Key': undefined } }),
      await call(api, 'POST', '/v1/chat/completions', { headers: from, body: chat }),
      await call(closed, 'POST', '/v1/chat/completions', { headers: from, body: chat }),
    ];
    let limited = answers[0];
    while (limited?.status !== 429) limited = await call(api, 'GET', '/v1/prompts', { headers: slow });
    answers.push(limited);
    expect(answers.map(({ status }) => status)).toEqual([401, 404, 413, 502, 401, expect.any(Number), 503, 429]);
    for (const [at, answer] of answers.entries())
      expect([at, corsOf(answer).origin]).toEqual([at, at === 6 ? null : LISTED]);
  });

  test('an answer without an Origin varies by it where origins are listed, so that no cache serves it to a page', async () => {
    expect(corsOf(await call(api, 'GET', '/v1/prompts'))).toEqual({ origin: null, credentials: null, vary: 'Origin' });
    expect(corsOf(await call(closed, 'GET', '/v1/prompts'))).toEqual({ origin: null, credentials: null, vary: null });
  });

  test("an upstream's answer passes on none of its own CORS headers", async () => {
    const own = {
      'access-control-allow-origin': '*',
      'access-control-allow-credentials': 'true',
      vary: 'Accept-Encoding',
    };
    models.behave(json(200, '{}', own));
    const ask = (Origin: string) =>
      call(api, 'POST', '/v1/chat/completions', { headers: { Origin }, body: { model: 'm', messages: [] } });
    const [any, listed] = [await ask(ANY), await ask(LISTED)];
    expect([any.status, corsOf(any)]).toEqual([200, { origin: null, credentials: null, vary: 'Origin' }]);
    expect([listed.status, corsOf(listed)]).toEqual([200, { origin: LISTED, credentials: null, vary: 'Origin' }]);
  });
});

describe('a beacon', () => {
  const beacon = (query: string, headers: Record<string, string | undefined> = {}) =>
    call(api, 'POST', `${INGEST}/app${query}`, {
      raw: JSON.stringify(BATCH),
      headers: {
        'Content-Type': 'text/plain;charset=UTF-8',
        'X-Org-Api-Key': undefined,
        'X-Org-Id': undefined,
        Origin: ANY,
        ...headers,
      },
    });

  test('a beacon is accepted as text/plain with a key in the query, without X-Org-Id and whatever cookies come with it', async () => {
    expect((await beacon(`?api_key=${writeKey}`)).status).toBe(200);
    expect(
      (await beacon(`?api_key=${writeKey}`, { Cookie: 'svc_session=a.b.c', 'Sec-Fetch-Site': 'cross-site' })).status,
    ).toBe(200);
  });

  test.each([
    ['a key of every scope', () => KEY, 403, 'forbidden', /only scope is ingest:write/],
    [
      'a key of more scopes',
      () => rawKey(['ingest:write', 'traces:read']),
      403,
      'forbidden',
      /only scope is ingest:write/,
    ],
    ['a key of another scope', () => rawKey(['traces:read']), 403, 'forbidden', /only scope is ingest:write/],
    ['a key that is not known', () => `${KEY}x`, 401, 'unauthenticated', /not valid/],
    ['nothing', () => '', 401, 'unauthenticated', /not valid/],
    ['the token of a person', () => tokenOf({ sub: 'user_local' }), 401, 'unauthenticated', /not valid/],
  ])('a beacon with %s in the query is rejected', async (_, key, status, code, detail) => {
    const answer = await beacon(`?api_key=${await key()}`);
    expect([answer.status, answer.json?.['code']]).toEqual([status, code]);
    expect(answer.json?.['detail']).toMatch(detail);
    if ((await key()) !== '') expect(answer.text).not.toContain(await key());
  });

  test('a beacon with two keys, or with one in the query and one in a header, is rejected', async () => {
    for (const answer of [
      await beacon(`?api_key=${writeKey}&api_key=${writeKey}`),
      await beacon(`?api_key=${writeKey}`, { 'X-Org-Api-Key': writeKey }),
      await beacon(`?api_key=${writeKey}`, { Authorization: `Bearer ${writeKey}` }),
    ])
      expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
  });

  test('a beacon with a key of another organization is rejected', async () => {
    const answer = await call(api, 'POST', `/orgs/org_other/ingest/app?api_key=${writeKey}`, {
      body: BATCH,
      headers: { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined },
    });
    expect([answer.status, answer.json?.['code']]).toEqual([403, 'cross_org_access']);
  });

  test("a beacon with a person's session cookie is rejected from every other site, as nothing proves that the person sent it", async () => {
    const Cookie = `svc_session=${await tokenOf({ sub: 'user_local', email: 'owner@example.com' })}`;
    for (const site of [{ 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }, {}])
      expect((await beacon('', { Cookie, ...site })).status).toBe(403);
  });
});

test('no other endpoint accepts text/plain or a key in the query', async () => {
  const plain = { 'Content-Type': 'text/plain' };
  for (const path of [`${INGEST}/custom`, '/v1/traces', '/v1/prompts', '/v1/chat/completions'])
    expect([path, (await call(api, 'POST', path, { headers: plain, raw: JSON.stringify(anEvent()) })).status]).toEqual([
      path,
      415,
    ]);
  for (const path of [`${INGEST}/custom`, '/v1/otlp/v1/traces', '/v1/prompts']) {
    const answer = await call(api, 'POST', `${path}?api_key=${writeKey}`, {
      body: {},
      headers: { 'X-Org-Api-Key': undefined },
    });
    expect([path, answer.status]).toEqual([path, 401]);
  }
});
