// Checks that apply to every operation of the OpenAPI document: credentials, organizations, scopes,
// methods, request ids and hostile input.
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_VERSION } from '../../../api/http/envelope.ts';
import { type ErrorCode, STATUS_OF } from '../../../api/http/errors.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { type ModelServer, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { confirmed, eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, anEvent, call, INGEST, ORG, startTestApi, type TestApi } from './an_api.ts';
import { ANTHROPIC, codeOf, COMPATIBLE, GATEWAY, OTLP } from './other_shapes.ts';

interface Operation {
  method: string;
  path: string;
  security: Record<string, unknown>[];
  /** Missing if the operation accepts no body. */
  requestBody?: unknown;
}

let nats: TestNats;
/** Upstream of the gateway. */
let models: ModelServer;
let database: TestDatabase;
let api: TestApi;
let operations: Operation[];
let powerless: string;

beforeAll(async () => {
  nats = await startTestNats();
  database = await createTestDatabase();
  models = await startModelServer();
  api = await startTestApi({
    natsUrl: nats.url,
    clickhouseUrl: database.url,
    llmUrl: models.url,
    anthropicUrl: models.url,
  });
  await eventually(async () => (await call(api, 'GET', '/readyz')).text.includes('"clickhouse":"ok"'), {
    what: 'the migrations',
  });
  const document = (await call(api, 'GET', '/openapi.json')).json as {
    paths: Record<string, Record<string, Omit<Operation, 'method' | 'path'>>>;
  };
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, rest]) => ({ ...rest, method: method.toUpperCase(), path })),
  );
  // No operation accepts this scope alone, so a key with only this scope may call nothing.
  powerless = String(
    (await call(api, 'POST', `/orgs/${ORG}/api-keys`, { body: { name: 'powerless', scopes: ['references:delete'] } }))
      .json?.['raw_key'],
  );
});

afterAll(async () => {
  await api.close();
  await models.close();
  await nats.remove();
  await database.drop();
});

const fill = (path: string, org = ORG) => path.replace('{org_id}', org).replace(/\{[a-z_]+\}/g, 'x1');
const ofOrg = () => operations.filter(({ security }) => security.some((scheme) => 'orgApiKey' in scheme));
const ofOperator = () => operations.filter(({ security }) => security.some((scheme) => 'operator' in scheme));
const withBody = (method: string) => (method === 'GET' || method === 'DELETE' ? {} : { body: {} });

async function expectRefused(
  of: readonly Operation[],
  headers: Record<string, string>,
  code: ErrorCode,
  org = ORG,
): Promise<void> {
  expect(of.length).toBeGreaterThan(0);
  for (const { method, path } of of) {
    const response = await fetch(api.url + fill(path, org), {
      method,
      headers: { 'Content-Type': 'application/json', ...headers },
      ...(method === 'GET' || method === 'DELETE' ? {} : { body: '{}' }),
    });
    const body = (await response.json()) as Record<string, unknown>;
    const shown = ANTHROPIC.test(path) ? null : code;
    expect([method, path, response.status, codeOf(path, body)]).toEqual([method, path, STATUS_OF[code], shown]);
    if (!GATEWAY.test(path)) expect(body['request_id']).toBe(response.headers.get('x-request-id'));
  }
}

describe('every route', () => {
  test('every route of an organization rejects a caller without credentials, with a wrong key, of another organization, without its scope', async () => {
    const key = 'sk_svc_testkeytestkeytestkey';
    await expectRefused(ofOrg(), {}, 'unauthenticated');
    await expectRefused(ofOrg(), { 'X-Org-Api-Key': `${key}x`, 'X-Org-Id': ORG }, 'unauthenticated');
    await expectRefused(ofOrg(), { 'X-Org-Api-Key': key, 'X-Org-Id': 'org_other' }, 'cross_org_access');
    await expectRefused(
      ofOrg().filter(({ path }) => path.includes('{org_id}')),
      { 'X-Org-Api-Key': key },
      'cross_org_access',
      'org_other',
    );
    await expectRefused(ofOrg(), { 'X-Org-Api-Key': powerless, 'X-Org-Id': ORG }, 'forbidden');
  });

  test('every route of the operator rejects everybody else', async () => {
    await expectRefused(ofOperator(), {}, 'unauthenticated');
    await expectRefused(ofOperator(), { Authorization: `Bearer ${ADMIN_TOKEN}x` }, 'unauthenticated');
    await expectRefused(ofOperator(), { 'X-Org-Api-Key': 'sk_svc_testkeytestkeytestkey' }, 'forbidden');
  });

  test('every route rejects unsupported versions and accepts supported ones', async () => {
    for (const version of ['2.0', '1.8', '1', 'x', '1.7.0.0']) {
      // Clients of other vendors do not send our version.
      for (const { method, path } of ofOrg().filter((operation) => !COMPATIBLE.test(operation.path))) {
        const answer = await call(api, method, fill(path), {
          ...withBody(method),
          headers: { 'X-Service-Api-Version': version },
        });
        expect([path, version, answer.status, codeOf(path, answer.json ?? {})]).toEqual([
          path,
          version,
          422,
          ANTHROPIC.test(path) ? null : 'unsupported_api_version',
        ]);
      }
    }
    for (const version of ['1.7', '1.7.0', '1.7.9', '1.7.x', '1.6']) {
      expect((await call(api, 'GET', `/orgs/${ORG}`, { headers: { 'X-Service-Api-Version': version } })).status).toBe(
        200,
      );
    }
  });

  test('every route answers another method with 405 and Allow', async () => {
    for (const path of new Set(operations.map((operation) => operation.path))) {
      // Below these roots every path that is not supported is 501.
      if (COMPATIBLE.test(path)) continue;
      const taken = operations.filter((operation) => operation.path === path).map(({ method }) => method);
      const method = ['PUT', 'PATCH', 'DELETE', 'POST', 'GET'].find((one) => !taken.includes(one)) ?? '';
      const answer = await call(api, method, fill(path), withBody(method));
      expect([path, method, answer.status, codeOf(path, answer.json ?? {})]).toEqual([
        path,
        method,
        405,
        ANTHROPIC.test(path) ? null : 'method_not_allowed',
      ]);
      for (const one of taken) expect(answer.headers.get('allow')).toContain(one);
    }
  });
});

test('JSON nested without end is rejected, without a 5xx, by every route that accepts a body', async () => {
  const raw = `{"deep":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  const named: string[] = [];
  for (const { method, path, requestBody, security } of operations) {
    // The gateway's upstream validates the body of a gateway request.
    if (requestBody === undefined || GATEWAY.test(path) || ANTHROPIC.test(path)) continue;
    const headers = security.some((scheme) => 'operator' in scheme)
      ? { Authorization: `Bearer ${ADMIN_TOKEN}`, 'X-Org-Api-Key': undefined }
      : {};
    const { status, json } = await confirmed(() => call(api, method, fill(path), { raw, headers }));
    // OTLP JSON requires receivers to ignore unknown fields, whatever their values.
    const least = OTLP.test(path) || COMPATIBLE.test(path) ? 200 : 400;
    expect([method, path, status >= least && (status < 500 || (status === 501 && COMPATIBLE.test(path)))]).toEqual([
      method,
      path,
      true,
    ]);
    if (status === 422 && json?.['code'] === 'invalid_request' && /^body: .*nested/.test(String(json['detail'])))
      named.push(`${method} ${path}`);
  }
  expect(named).toEqual(
    expect.arrayContaining(['POST /v1/datasets', 'POST /v1/judges', 'POST /v1/prompts', 'POST /admin/orgs']),
  );
  const dataset = await call(api, 'POST', '/v1/datasets', {
    raw: `{"name":"deep","version":"1","items":[{"input":${raw}}]}`,
  });
  expect([dataset.status, dataset.json?.['detail']]).toEqual([422, 'body: is nested deeper than 128 levels']);
});

test('unknown routes are 404 with a request id, also without credentials', async () => {
  for (const path of ['/', '/v2/traces', '/orgs', '/%zz', '/orgs/%ff', '/admin/nothing']) {
    const response = await fetch(api.url + path);
    expect([path, response.status, response.headers.get('x-request-id')]).toEqual([
      path,
      404,
      expect.stringMatching(/^req_/),
    ]);
    expect(((await response.json()) as Record<string, unknown>)['code']).toBe('not_found');
  }
});

test('health, metrics and documentation are open and carry a request id', async () => {
  for (const [path, type] of [
    ['/healthz', 'application/json'],
    ['/metrics', 'text/plain'],
    ['/openapi.json', 'application/json'],
    ['/docs', 'text/html'],
  ] as const) {
    const response = await fetch(api.url + path);
    expect([path, response.status, response.headers.get('content-type')]).toEqual([
      path,
      200,
      expect.stringContaining(type),
    ]);
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
    await response.body?.cancel();
  }
  const ready = await fetch(`${api.url}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([
    503,
    { status: 'unavailable', checks: { nats: 'ok', clickhouse: 'ok', consumers: 'down', budgets: 'ok' } },
  ]);
});

test('metrics name routes by pattern, never by what a caller sent', async () => {
  await call(api, 'GET', '/orgs/org_secret_name');
  await call(api, 'POST', `${INGEST}/nonsense`, { body: {} });
  await call(api, 'POST', `${INGEST}/custom`, { body: anEvent() });
  const { text } = await call(api, 'GET', '/metrics');
  expect(text).toMatch(/http_request_duration_seconds_count\{[^}]*route="\/orgs\/\{org_id\}"[^}]*\}/);
  expect(text).toMatch(/millrace_ingest_events_total\{[^}]*format="custom"[^}]*\} \d/);
  expect(text).not.toMatch(/org_secret_name|nonsense|org_test/);
});

test('a success carries data, and meta with the current version', async () => {
  const answer = await call(api, 'GET', `/orgs/${ORG}`);
  expect(answer.json?.['meta']).toEqual({
    api_version: API_VERSION,
    request_id: answer.headers.get('x-request-id'),
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/) as string,
  });
});

test('bytes that are not HTTP get an answer with a request id, and the server continues', async () => {
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(api.port, '127.0.0.1', () => socket.write('\x00\x01 nonsense\r\n\r\n'));
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    socket.on('close', () => {
      resolve(text);
    });
    socket.on('error', reject);
  });
  expect(answer).toMatch(/^HTTP\/1\.1 400 .*X-Request-Id: req_/s);
  expect((await fetch(`${api.url}/healthz`)).status).toBe(200);
});

test('a client that disconnects in the middle of its body affects no other client', async () => {
  for (let times = 0; times < 20; times++) {
    await new Promise<void>((resolve, reject) => {
      const socket = connect(api.port, '127.0.0.1', () => {
        socket.write(
          `POST ${INGEST}/custom HTTP/1.1\r\nHost: x\r\nX-Org-Api-Key: sk_svc_testkeytestkeytestkey\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"name":`,
          () => {
            socket.destroy();
          },
        );
      });
      socket.on('close', () => {
        resolve();
      });
      socket.on('error', reject);
    });
  }
  expect((await call(api, 'POST', `${INGEST}/custom`, { body: anEvent() })).status).toBe(200);
  await eventually(async () =>
    /millrace_ingest_requests_total\{[^}]*status="499"[^}]*\} 20/.test((await call(api, 'GET', '/metrics')).text),
  );
});

describe('hostile input never makes a 5xx', () => {
  const formats = fc.constantFrom('chatcompletion', 'messages', 'chain', 'custom', 'app');
  const keys = fc.constantFrom(
    'request',
    'response',
    'messages',
    'model',
    'events',
    'name',
    'event_type',
    'outcome',
    'duration_ms',
    'attributes',
    'tags',
    'trace_id',
    'started_at',
    'usage',
    'choices',
    'content',
    'generations',
    'intermediate_steps',
    'session_id',
    '__proto__',
    'toJSON',
    'constructor',
  );
  const almost = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.jsonValue(),
      fc.constantFrom('success', 'error', '2026-01-01T00:00:00Z', -1, 1e308, ''),
      tie('object'),
      fc.array(tie('value'), { maxLength: 4 }),
    ),
    object: fc.dictionary(keys, tie('value'), { maxKeys: 8 }),
  })).value;

  const sent = (url: string, init: RequestInit): Promise<Response> => confirmed(() => fetch(url, init));

  async function expectContract(response: Response): Promise<void> {
    const text = await response.text();
    expect(response.status, text).toBeLessThan(500);
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
    if (response.status < 400) return;
    const body = JSON.parse(text) as Record<string, unknown>;
    expect(Object.keys(body).sort()).toEqual(['code', 'detail', 'request_id']);
    expect(STATUS_OF[body['code'] as ErrorCode]).toBe(response.status);
  }

  const headers = { 'X-Org-Api-Key': 'sk_svc_testkeytestkeytestkey', 'Content-Type': 'application/json' };

  test('JSON of any shape sent to ingest never causes a 5xx', async () => {
    await fc.assert(
      fc.asyncProperty(formats, almost, async (format, body) => {
        await expectContract(
          await sent(`${api.url}${INGEST}/${format}`, { method: 'POST', headers, body: JSON.stringify(body) }),
        );
      }),
      { numRuns: 4000 },
    );
  }, 240_000);

  test('bytes of any kind sent to ingest, under any encoding, never cause a 5xx', async () => {
    await fc.assert(
      fc.asyncProperty(
        formats,
        fc.uint8Array({ maxLength: 300 }),
        fc.constantFrom('identity', 'gzip', 'br'),
        async (format, bytes, encoding) => {
          await expectContract(
            await sent(`${api.url}${INGEST}/${format}`, {
              method: 'POST',
              headers: { ...headers, 'Content-Encoding': encoding },
              body: Uint8Array.from(bytes),
            }),
          );
        },
      ),
      { numRuns: 2000 },
    );
  }, 240_000);

  test('any path, query, header value and body on the other routes never cause a 5xx', async () => {
    const token = fc.string({ unit: fc.constantFrom(...Array.from('abc019-_.~%/?#&=[]{}" ü')), maxLength: 24 });
    const headerValue = fc.string({ unit: fc.constantFrom(...Array.from('abc019-_.:;,/+= "')), maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...operations),
        token,
        token,
        headerValue,
        almost,
        fc.boolean(),
        async ({ method, path }, part, query, value, body, asOperator) => {
          const url = `${api.url}${path.replace('{org_id}', ORG).replace(/\{[a-z_]+\}/g, encodeURIComponent(part))}?limit=${encodeURIComponent(query)}&${encodeURIComponent(part)}=${query.replace(/[^a-z0-9&=]/g, '')}`;
          const auth = asOperator
            ? { Authorization: `Bearer ${ADMIN_TOKEN}` }
            : { 'X-Org-Api-Key': headers['X-Org-Api-Key'] };
          const response = await sent(url, {
            method,
            headers: {
              ...auth,
              'Content-Type': 'application/json',
              'X-Service-Api-Version': value === '' ? '1.7' : value,
              'Idempotency-Key': value,
            },
            ...(method === 'GET' || method === 'DELETE' ? {} : { body: JSON.stringify(body) }),
          });
          // A body that is not valid OTLP is answered in OTLP's own error format, and the gateway's
          // upstream answers in its own format.
          const otherShape =
            GATEWAY.test(path) ||
            ANTHROPIC.test(path) ||
            COMPATIBLE.test(path) ||
            (OTLP.test(path) && response.status === 400);
          if (otherShape)
            expect([response.status < 500 || response.status === 501, response.headers.has('x-request-id')]).toEqual([
              true,
              true,
            ]);
          if (path === '/readyz' || otherShape) await response.body?.cancel();
          else if (response.headers.get('content-type')?.includes('json') === true) await expectContract(response);
          else await response.body?.cancel();
        },
      ),
      { numRuns: 4000 },
    );
  }, 240_000);
});
