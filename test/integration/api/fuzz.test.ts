// Sends hostile requests to every operation of a real API with ClickHouse and NATS. No request may
// cause a 5xx or a hang, and every answer must have the shape that the contract defines. The seed
// is fixed, so a failure can be reproduced; the test prints the seed with the failing case.
//
// A busy machine may delay an acknowledgement of NATS or an answer of ClickHouse past its time
// limit. The contract then requires 502 upstream_unavailable, and clients retry the request, so
// this test retries it too. A request that is answered only with 502 fails the test.
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { STATUS_OF } from '../../../api/http/errors.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { decodeAnswer, decodeStatus } from '../../support/otlp.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';
import { eventually } from '../../support/wait.ts';
import { type Headers, makeOtherOrg, type Operation, operationsOf, OWNER } from './a_cast.ts';
import { ADMIN_TOKEN, asUser, call, KEY, ORG, startTestApi, type TestApi, tokenOf } from './an_api.ts';
import { type HostileCase, hostileCases } from './hostile.ts';

const SEED = 20_261_121;
const CASES = 11_000;
const CONNECTIONS = 16;
/**
 * Time in ms after which a missing answer counts as a hang. It is far longer than any answer takes.
 */
const HANG_MS = 60_000;
/**
 * How long the test retries a request that a store is too busy to answer, and the pause before each
 * retry, in ms.
 */
const BUSY_MS_MAX = 60_000;
const BUSY_PAUSE_MS = 200;

let nats: TestNats;
let store: TestStore;
let api: TestApi;
let operations: Operation[];
let callers: Record<HostileCase['caller'], Headers>;
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });

beforeAll(async () => {
  nats = await startTestNats();
  store = await openTestStore();
  const spans = ['trc_a', 'trc_b'].map((trace_id) => aSpan({ org_id: ORG, trace_id }));
  await store.landSpans(spans);
  await store.landTraces(tracesOf(spans).map((state) => ({ state, version: 1, sign: 1 as const })));
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url });
  await eventually(async () => (await call(api, 'GET', '/v1/traces')).status === 200, { what: 'the migrations' });
  await makeOtherOrg(api);
  operations = await operationsOf(api);
  callers = {
    owner: asUser(await tokenOf({ sub: OWNER })),
    key: { 'X-Org-Api-Key': KEY, 'X-Org-Id': ORG },
    operator: { Authorization: `Bearer ${ADMIN_TOKEN}` },
  };
}, 300_000);

afterAll(async () => {
  agent.destroy();
  await api.close();
  await store.close();
  await nats.remove();
});

interface Heard {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  bytes: Uint8Array;
}

function send(one: HostileCase, method: string): Promise<Heard> {
  const withBody = method !== 'GET';
  const ofBody: Headers = withBody
    ? { 'Content-Type': 'application/json', 'Content-Length': String(one.body.length) }
    : {};
  const headers: Record<string, string> = {};
  for (const [name, value] of [callers[one.caller], ofBody, one.headers].flatMap((each) =>
    Object.entries<string | undefined>(each),
  ))
    if (value !== undefined) headers[name] = value;
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        agent,
        host: '127.0.0.1',
        port: api.port,
        method,
        path: one.query === '' ? one.path : `${one.path}?${one.query}`,
        headers,
        timeout: HANG_MS,
      },
      (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.on('end', () => {
          const bytes = Buffer.concat(chunks);
          resolve({ status: res.statusCode ?? 0, headers: res.headers, text: bytes.toString(), bytes });
        });
        res.on('error', reject);
      },
    );
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${HANG_MS} ms`)));
    sent.on('error', reject);
    sent.end(withBody ? one.body : undefined);
  });
}

const isBusy = ({ status, text }: Heard): boolean => status === 502 && text.includes('upstream_unavailable');

/**
 * Sends a request and, as a client does, retries it while the answer is 502 upstream_unavailable.
 */
async function sendUntilServed(one: HostileCase, method: string): Promise<Heard> {
  const deadline = performance.now() + BUSY_MS_MAX;
  for (;;) {
    const heard = await send(one, method);
    if (!isBusy(heard) || performance.now() > deadline) return heard;
    await sleep(BUSY_PAUSE_MS);
  }
}

const STATUSES: Readonly<Record<string, number>> = STATUS_OF;
/** Operations whose answers have no envelope in the contract. */
const BARE = /^(POST .*\/api-keys|GET \/(healthz|readyz|metrics|openapi\.json|docs))$|\/export$/;
/** Operations that answer in OTLP's format. */
const OTLP = /^POST \/(?:v1\/(?:otlp\/v1\/)?|api\/public\/otel\/v1\/)(?:traces|logs|metrics)$/;
/** Operations for clients of other vendors, whose answers have those vendors' shapes. */
const COMPATIBLE = /^\w+ \/(?:api\/public|langsmith)\//;
/** Operations that answer in Anthropic's format. */
const ANTHROPIC = /^POST \/(?:anthropic\/)?v1\/messages(?:\/count_tokens)?$/;
/** Operations that answer in OpenAI's format. This API has no upstream. */
const GATEWAY = /^(POST \/v1\/(chat\/completions|responses|embeddings)|GET \/v1\/models(\/\{model\})?)$/;
/** Operations that may answer 5xx because this test runs no pipeline worker. */
const AWAY = new Set(['POST /admin/jobs/{name}/run', 'POST /admin/reprice', 'POST /v1/judges/preview', 'GET /readyz']);

/** The login at an identity provider leads the browser on, also after a failure. */
const REDIRECTS = /^GET \/v1\/session\/oidc/;

/** Returns what is wrong with an answer, or null if nothing is. */
function complaint({ status, headers, text, bytes }: Heard, name: string): string | null {
  const id = headers['x-request-id'];
  if (typeof id !== 'string' || !/^req_[0-9a-f]{32}$/.test(id)) return 'no X-Request-Id';
  if (headers['x-injected'] !== undefined) return 'a header was injected';
  if (GATEWAY.test(name)) return complaintOfGateway(status, JSON.parse(text) as Record<string, unknown>);
  if (ANTHROPIC.test(name)) return complaintOfAnthropic(status, JSON.parse(text) as Record<string, unknown>, id);
  if (status === 501 && COMPATIBLE.test(name)) return null;
  if (status >= 500 && !AWAY.has(name)) return 'a 5xx';
  if (status >= 300 && status < 400 && REDIRECTS.test(name)) return null;
  if (status < 200 || (status >= 300 && status < 400)) return 'an odd status';
  if (name === 'GET /readyz') return null;
  if (status < 300 && BARE.test(name)) return null;
  if (OTLP.test(name) && headers['content-type'] === 'application/x-protobuf') {
    if (status < 300) return complaintOfOtlp(status, decodeAnswer(bytes), id);
    const { info, ...said } = decodeStatus(bytes);
    return complaintOfOtlp(status, { ...said, details: [info] }, id);
  }
  if (!String(headers['content-type']).startsWith('application/json')) return 'no JSON';
  const body = JSON.parse(text) as Record<string, unknown>;
  if (OTLP.test(name) && (status < 300 || status === 400)) return complaintOfOtlp(status, body, id);
  if (status < 300 && COMPATIBLE.test(name)) return null;
  if (status < 300) {
    const meta = body['meta'] as Record<string, unknown> | undefined;
    if (meta?.['request_id'] !== id && headers['idempotency-replayed'] === undefined)
      return 'a meta without the request id';
    return 'data' in body && meta?.['api_version'] === '1.7.0' ? null : 'no envelope';
  }
  if (Object.keys(body).toSorted().join() !== 'code,detail,request_id') return 'an error of another shape';
  if (body['request_id'] !== id) return 'another request id in the body';
  if (typeof body['detail'] !== 'string' || body['detail'] === '') return 'no detail';
  if (/\bat .*\.ts:\d+|DB::Exception|SELECT |node:internal/.test(body['detail'])) return 'a detail from the inside';
  // Node itself rejects a URL or header that exceeds its limits, before any route.
  if (status === 431 && body['code'] === 'invalid_request') return null;
  return STATUSES[String(body['code'])] === status ? null : 'a code that is not of this status';
}

/**
 * Returns what is wrong with an answer of the gateway, or null if nothing is. The gateway has no
 * upstream here, so every answer is the gateway's own error.
 */
function complaintOfGateway(status: number, body: Record<string, unknown>): string | null {
  const error = body['error'] as Record<string, unknown> | undefined;
  // Node itself rejects a request that exceeds its limits, before any path is matched.
  if (status === 431) return null;
  if (
    Object.keys(error ?? {})
      .toSorted()
      .join() !== 'code,message,param,type'
  )
    return 'an error of another shape';
  if (typeof error?.['message'] !== 'string' || /\bat .*\.ts:\d+|node:internal/.test(error['message']))
    return 'a message from the inside';
  if (status >= 500 && error['code'] !== 'upstream_not_configured') return 'a 5xx';
  return STATUSES[String(error['code'])] === status ? null : 'a code that is not of this status';
}

/** Returns what is wrong with an answer in Anthropic's format, which has no upstream here either. */
function complaintOfAnthropic(status: number, body: Record<string, unknown>, id: string): string | null {
  if (status === 431) return null;
  if (Object.keys(body).toSorted().join() !== 'error,request_id,type') return 'an error of another shape';
  if (body['request_id'] !== id) return 'another request id in the body';
  const { message } = body['error'] as Record<string, unknown>;
  if (typeof message !== 'string' || /\bat .*\.ts:\d+|node:internal/.test(message)) return 'a message from the inside';
  return status >= 500 && !message.startsWith('No upstream is configured') ? 'a 5xx' : null;
}

/**
 * Returns what is wrong with an answer of the OTLP paths, or null if nothing is. An answer is an
 * ExportTraceServiceResponse, or a google.rpc.Status at 400.
 */
function complaintOfOtlp(status: number, body: Record<string, unknown>, id: string): string | null {
  if (status < 300) return ['', 'partialSuccess'].includes(Object.keys(body).join()) ? null : 'no answer to an export';
  const [info] = (body['details'] ?? []) as { reason: string; metadata: Record<string, unknown> }[];
  if (typeof body['code'] !== 'number' || info?.metadata['request_id'] !== id) return 'no google.rpc.Status';
  if (typeof body['message'] !== 'string' || /\bat .*\.ts:\d+|node:internal/.test(body['message']))
    return 'a message from the inside';
  return info.reason === 'invalid_request' ? null : 'a reason that is not of this status';
}

test('no generated request causes a 5xx', async () => {
  const known = {
    org_id: ORG,
    trace_id: 'trc_a',
    agent_id: 'agent_x',
    name: 'retention',
    user_id: 'user_none',
    key_id: 'ak_none',
  };
  const cases = fc.sample(hostileCases(operations, known), { seed: SEED, numRuns: CASES });
  const statuses = new Map<number, number>();
  const answered = new Set<string>();
  const wrong = new Map<string, string>();
  const run = async (one: HostileCase) => {
    const { name, method } = operations[one.operation] ?? { name: '', method: 'GET' };
    const heard = await (AWAY.has(name) ? send : sendUntilServed)(one, method).catch((error: unknown): Heard => ({
      status: 0,
      headers: {},
      text: String(error),
      bytes: Buffer.alloc(0),
    }));
    answered.add(name);
    statuses.set(heard.status, (statuses.get(heard.status) ?? 0) + 1);
    const what = complaint(heard, name);
    if (what === null) return;
    const sent = `${one.caller} ${one.path}?${one.query} ${JSON.stringify(one.headers)} ${one.what}`;
    wrong.set(
      `${what}: ${name}`,
      `seed ${SEED}: ${sent.slice(0, 1000)} -> ${heard.status} ${heard.text.slice(0, 300)}`,
    );
  };
  const queue = cases[Symbol.iterator]();
  const lane = async () => {
    for (const one of queue) await run(one);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, lane));

  expect(Object.fromEntries(wrong)).toEqual({});
  expect([...answered].toSorted()).toEqual(operations.map(({ name }) => name).toSorted());
  // Enough requests reached the handlers, and enough were rejected for their content.
  const share = (status: number) => (statuses.get(status) ?? 0) / CASES;
  expect([
    share(200) > 0.1,
    share(201) > 0.01,
    share(422) > 0.2,
    share(404) > 0.01,
    share(413) > 0,
    share(415) > 0,
  ]).toEqual(Array(6).fill(true));
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  await eventually(async () => (await call(api, 'GET', '/v1/traces')).status === 200, { what: 'an answer as before' });
}, 900_000);

/** Raw bytes that only a socket can send, because no HTTP client would. */
const RAW: Readonly<Record<string, readonly [sent: string | Buffer, status: number]>> = {
  'no Host': ['GET /healthz HTTP/1.1\r\n\r\n', 400],
  'HTTP/1.0, which needs none': ['GET /healthz HTTP/1.0\r\n\r\n', 200],
  'bytes that are no text in the path': [
    Buffer.from('GET /\xff\xfe HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 'latin1'),
    400,
  ],
  "another host's URL": ['GET http://evil.example/admin/orgs HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 401],
  'the server itself': ['OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 404],
  'an unknown expectation': ['GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: 200-maybe\r\nConnection: close\r\n\r\n', 200],
  'two lengths': ['POST /v1/session HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd', 400],
  'a length and chunks': [
    'POST /v1/session HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
  ],
  'a chunk of no size': ['POST /v1/session HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 400],
  'an unknown transfer encoding': ['POST /v1/session HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n', 400],
  'a tunnel': ['CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  'a method that no path takes': ['TRACE /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 405],
  'NUL in a header': ['GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n', 400],
  'too many headers': [`GET /healthz HTTP/1.1\r\nHost: a\r\n${'X: a\r\n'.repeat(3000)}\r\n`, 431],
  'a path that goes up': ['GET //orgs/../admin/orgs HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 404],
  'a version to come': ['GET /healthz HTTP/9.9\r\nHost: a\r\n\r\n', 400],
  TLS: [Buffer.from('1603010200010001fc0303', 'hex'), 400],
};

test.each(Object.entries(RAW))('%s', async (_, [sent, status]) => {
  const text = await new Promise<string>((resolve, reject) => {
    const socket = connect(api.port, '127.0.0.1', () => socket.write(sent));
    let heard = '';
    socket.on('data', (chunk: Buffer) => (heard += chunk.toString()));
    socket.on('close', () => {
      resolve(heard);
    });
    socket.on('error', reject);
    socket.setTimeout(HANG_MS, () => socket.destroy(new Error('no answer')));
  });
  const [head = '', body = ''] = text.split('\r\n\r\n');
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  const id = /^X-Request-Id: (req_[0-9a-f]{32})$/im.exec(head)?.[1];
  expect(id).toBeDefined();
  if (status >= 400)
    expect(JSON.parse(body)).toMatchObject({
      request_id: id,
      code: expect.any(String) as string,
      detail: expect.any(String) as string,
    });
});
