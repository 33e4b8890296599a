// Rejections that the API decides before the request body has arrived, at every endpoint that
// accepts a body. A client that is still writing its body reads the answer, with each HTTP client
// that is tested.
import { request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ModelServer, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { chunks, pieces, writeThenRead } from '../../support/raw_request.ts';
import { INGEST, KEY, ORG, startTestApi, type TestApi } from './an_api.ts';

const MB = 1_000_000;
const JSON_TYPE = { 'Content-Type': 'application/json' };
const MINE = { ...JSON_TYPE, 'X-Org-Api-Key': KEY, 'X-Org-Id': ORG };

let nats: TestNats;
let models: ModelServer;
let api: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  models = await startModelServer();
  api = await startTestApi({ natsUrl: nats.url, llmUrl: models.url });
});
afterAll(async () => {
  await api.close();
  await models.close();
  await nats.remove();
});

interface Case {
  name: string;
  method?: string;
  path: string;
  headers: Record<string, string>;
  status: number;
}

const CASES: readonly Case[] = [
  { name: 'ingest, too large', path: `${INGEST}/custom`, headers: MINE, status: 413 },
  { name: 'ingest without a credential', path: `${INGEST}/custom`, headers: JSON_TYPE, status: 401 },
  { name: 'ingest of another org', path: '/orgs/org_other/ingest/custom', headers: MINE, status: 403 },
  { name: 'ingest by another method', method: 'PUT', path: `${INGEST}/custom`, headers: MINE, status: 405 },
  {
    name: 'ingest of another content type',
    path: `${INGEST}/custom`,
    headers: { ...MINE, 'Content-Type': 'text/xml' },
    status: 415,
  },
  { name: 'ingest of an unknown format', path: `${INGEST}/nothing`, headers: MINE, status: 422 },
  { name: 'OTLP, too large', path: '/v1/otlp/v1/traces', headers: MINE, status: 413 },
  { name: 'OTLP without a credential', path: '/v1/traces', headers: JSON_TYPE, status: 401 },
  { name: 'the gateway, too large', path: '/v1/chat/completions', headers: MINE, status: 413 },
  { name: 'the gateway without a credential', path: '/v1/chat/completions', headers: JSON_TYPE, status: 401 },
  { name: 'a declared route, too large', path: '/v1/datasets', headers: MINE, status: 413 },
  { name: 'a declared route without a credential', path: '/v1/datasets', headers: JSON_TYPE, status: 401 },
  { name: 'a declared route by another method', method: 'PATCH', path: '/v1/datasets', headers: MINE, status: 405 },
  { name: 'an unknown path', path: '/v2/nothing', headers: MINE, status: 404 },
  { name: 'a query of an unknown analyst', path: '/', headers: { Authorization: 'Basic bm9ib2R5Og==' }, status: 403 },
];
const linesOf = ({ method = 'POST', path, headers }: Case, ...more: string[]): string[] => [
  `${method} ${path} HTTP/1.1`,
  'Host: a',
  ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ...more,
];

describe.each(CASES)('$name answers $status', (one) => {
  test('an early answer reaches a client that writes 5 to 60 MB with Connection: close before it reads', async () => {
    for (const size of [6, 20, 60]) {
      const head = linesOf(one, 'Connection: close', `Content-Length: ${size * MB}`);
      for (const halfClose of [false, true]) {
        const got = await writeThenRead(api.port, { head, pieces: pieces(size * MB), halfClose });
        expect([size, halfClose, got.status, got.error, got.body === '']).toEqual([
          size,
          halfClose,
          one.status,
          null,
          false,
        ]);
        expect(got.head).toMatch(/^X-Request-Id: req_/im);
      }
    }
  });

  test('an early answer reaches a client that writes chunks', async () => {
    const head = linesOf(one, 'Connection: close', 'Transfer-Encoding: chunked');
    const got = await writeThenRead(api.port, { head, pieces: chunks(20 * MB) });
    expect([got.status, got.error]).toEqual([one.status, null]);
  });

  test('an early answer reaches fetch and node:http, on connections that are kept and on those that close', async () => {
    const { method = 'POST', path, headers } = one;
    const body = Buffer.alloc(20 * MB, 'x');
    const response = await fetch(api.url + path, { method, headers, body });
    expect([response.status, (await response.text()) === '']).toEqual([one.status, false]);
    if (one.status === 413) expect(response.headers.get('connection')).toBe('close');
    for (const connection of ['close', 'keep-alive']) {
      const status = await new Promise((resolve, reject) => {
        const sent = request(api.url + path, { method, headers: { ...headers, connection } }, (res) => {
          res.resume().on('end', () => {
            resolve(res.statusCode);
          });
        });
        sent.on('error', reject).end(body);
      });
      expect([connection, status]).toEqual([connection, one.status]);
    }
  });

  test('an early answer reaches a client that waits for 100 Continue, without telling it to continue', async () => {
    const head = linesOf(one, 'Expect: 100-continue', `Content-Length: ${20 * MB}`);
    const got = await writeThenRead(api.port, { head, pieces: [] });
    expect([got.status, /^connection: close$/im.test(got.head)]).toEqual([one.status, true]);
  });
});

test('a small body that decompresses beyond the limit is 413', async () => {
  const body = gzipSync(Buffer.alloc(100 * MB));
  for (const path of [`${INGEST}/custom`, '/v1/traces', '/v1/chat/completions', '/v1/datasets']) {
    const response = await fetch(api.url + path, {
      method: 'POST',
      headers: { ...MINE, 'Content-Encoding': 'gzip' },
      body,
    });
    expect([path, response.status, response.headers.get('connection')]).toEqual([path, 413, 'close']);
  }
});

test('a client that waits for 100 Continue with an acceptable body is told to continue, and served', async () => {
  const body = JSON.stringify({ name: 'step', outcome: 'success', duration_ms: 1 });
  const status = await new Promise((resolve, reject) => {
    const headers = { ...MINE, Expect: '100-continue', 'Content-Length': String(body.length) };
    const sent = request(`${api.url}${INGEST}/custom`, { method: 'POST', headers }, (res) => {
      res.resume();
      resolve(res.statusCode);
    });
    sent.on('error', reject).on('continue', () => sent.end(body));
    sent.flushHeaders();
  });
  expect(status).toBe(200);
});
