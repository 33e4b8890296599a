// Every answer of an API process carries the security headers: those of routes, errors, ingest, the
// gateway, analysts and pages.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { json, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { anEvent, call, INGEST, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let upstream: ModelServer;
let api: TestApi;

beforeAll(async () => {
  [nats, upstream] = await Promise.all([startTestNats(), startModelServer()]);
  api = await startTestApi({ natsUrl: nats.url, llmUrl: upstream.url, bodyBytesMax: 2048 });
}, 60_000);
afterAll(async () => {
  await api.close();
  await upstream.close();
  await nats.remove();
});

const NONE = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function expectSecured(headers: Headers, policy = NONE): void {
  expect(headers.get('content-security-policy')).toBe(policy);
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect(headers.get('x-frame-options')).toBe('DENY');
  expect(headers.get('referrer-policy')).toBe('no-referrer');
}

const nobody = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined };
const large = JSON.stringify(anEvent({ name: 'x'.repeat(4096) }));

test.each<[title: string, status: number, method: string, path: string, options: Parameters<typeof call>[3]]>([
  ['a check of health', 200, 'GET', '/healthz', {}],
  ['a check of readiness', 503, 'GET', '/readyz', {}],
  ['metrics', 200, 'GET', '/metrics', {}],
  ['the OpenAPI document', 200, 'GET', '/openapi.json', {}],
  ['an answer with an envelope', 200, 'GET', '/v1/prompts', {}],
  ['a missing credential', 401, 'GET', '/v1/traces', { headers: nobody }],
  ['an unknown route', 404, 'GET', '/nowhere', {}],
  ['a path that cannot be decoded', 404, 'GET', '/orgs/%ff', {}],
  ['another method', 405, 'DELETE', '/healthz', {}],
  ['a bad body', 422, 'POST', '/v1/prompts', { raw: '{' }],
  ['an ingest', 200, 'POST', `${INGEST}/custom`, { body: anEvent() }],
  ['a refused ingest', 422, 'POST', `${INGEST}/custom`, { raw: '{' }],
  ['a body that is too large', 413, 'POST', `${INGEST}/custom`, { raw: large }],
  ['a refused export of spans', 400, 'POST', '/v1/otlp/v1/traces', { raw: '{' }],
  ['a call through the gateway', 200, 'GET', '/v1/models', {}],
  ['a refused call through the gateway', 401, 'GET', '/v1/models', { headers: nobody }],
  ['a refused query of an analyst', 403, 'GET', '/?query=SELECT%201&user=nobody&password=x', { headers: nobody }],
])('%s', async (_, status, method, path, options) => {
  upstream.behave(json(200, '{}', { 'content-security-policy': "default-src 'self'", 'x-frame-options': 'ALLOWALL' }));
  const answer = await call(api, method, path, options);
  expect([path, answer.status]).toEqual([path, status]);
  expectSecured(answer.headers);
});

test('the reference allows its own inline style and script by their hashes, and nothing else', async () => {
  const { status, headers, text } = await call(api, 'GET', '/docs');
  expect(status).toBe(200);
  const hashesOf = (tag: string): string[] =>
    [...text.matchAll(new RegExp(`<${tag}>([^]*?)</${tag}>`, 'g'))].map(
      ([, content = '']) => `'sha256-${createHash('sha256').update(content).digest('base64')}'`,
    );
  const [styles, scripts] = [hashesOf('style'), hashesOf('script')];
  expect([styles.length, scripts.length]).toEqual([1, 1]);
  expect(text.replace(/<script>[^]*?<\/script>/, '')).not.toMatch(/<script|<link|<img|\sstyle=|\son[a-z]+=/);
  expectSecured(headers, `${NONE}; style-src ${styles.join()}; script-src ${scripts.join()}`);
});

test.each(['nonsense\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n'])(
  'a request that is not HTTP gets an answer: %j',
  async (text) => {
    const socket = connect(api.port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.write(text);
    await once(socket, 'close');
    const [first = '', ...lines] = Buffer.concat(chunks).toString().split('\r\n\r\n')[0]?.split('\r\n') ?? [];
    expect(first).toBe('HTTP/1.1 400 Bad Request');
    expectSecured(new Headers(lines.map((line) => line.split(': ', 2) as [string, string])));
  },
);
