// Large answers are compressed for clients that accept it, small ones and secrets never.
import { request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { call, KEY, ORG, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let api: TestApi;
beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url, corsOrigins: ['https://app.example.com'] });
  // A list of 40 prompts of 1,000 characters each is larger than 16 KiB.
  for (let at = 0; at < 40; at += 1) {
    const made = await call(api, 'POST', '/v1/prompts', {
      body: { name: `prompt-${at}`, template: `${at} ${'A sentence of a prompt. '.repeat(40)}` },
    });
    expect(made.status).toBe(201);
  }
});
afterAll(async () => {
  await api.close();
  await nats.remove();
});

interface Raw {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

/** Sends a request whose answer is not decompressed. */
function raw(method: string, path: string, { body, ...headers }: Record<string, string> = {}): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const all = { 'X-Org-Api-Key': KEY, 'X-Org-Id': ORG, 'Content-Type': 'application/json', ...headers };
    request({ port: api.port, method, path, headers: all }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      });
    })
      .on('error', reject)
      .end(body);
  });
}

const LIST = '/v1/prompts?limit=200';
const dataOf = (text: Buffer): unknown => (JSON.parse(text.toString()) as { data: unknown }).data;

test('a large answer is compressed for a client that accepts gzip, and is the same', async () => {
  const plain = await raw('GET', LIST);
  expect(plain.body.byteLength).toBeGreaterThan(16 * 1024);
  expect([plain.headers['content-encoding'], plain.headers['vary']]).toEqual([undefined, 'Origin, Accept-Encoding']);
  const zipped = await raw('GET', LIST, { 'Accept-Encoding': 'gzip, deflate, br' });
  expect(zipped.headers['content-encoding']).toBe('gzip');
  expect(zipped.headers['content-length']).toBe(String(zipped.body.byteLength));
  expect(zipped.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(zipped.headers['vary']).toBe('Origin, Accept-Encoding');
  expect(zipped.body.byteLength).toBeLessThan(plain.body.byteLength / 4);
  expect(dataOf(gunzipSync(zipped.body))).toEqual(dataOf(plain.body));
});

test('a client that refuses gzip gets the answer as it is', async () => {
  for (const accepted of ['identity', 'gzip;q=0', 'br', '*;q=0'])
    expect((await raw('GET', LIST, { 'Accept-Encoding': accepted })).headers['content-encoding']).toBeUndefined();
});

test('HEAD answers the headers of GET without a body', async () => {
  const get = await raw('GET', LIST, { 'Accept-Encoding': 'gzip' });
  const head = await raw('HEAD', LIST, { 'Accept-Encoding': 'gzip' });
  expect(head.body.byteLength).toBe(0);
  expect([head.headers['content-encoding'], head.headers['content-type']]).toEqual([
    get.headers['content-encoding'],
    get.headers['content-type'],
  ]);
});

test('a small answer is not compressed', async () => {
  const answer = await raw('GET', '/v1/prompts?limit=1', { 'Accept-Encoding': 'gzip' });
  expect([answer.headers['content-encoding'], answer.headers['vary']]).toEqual([undefined, 'Origin']);
});

test('the API reference and the metrics are compressed', async () => {
  for (const path of ['/docs', '/openapi.json', '/metrics']) {
    const { headers, body } = await raw('GET', path, { 'Accept-Encoding': 'gzip' });
    expect([path, headers['content-encoding']]).toEqual([path, 'gzip']);
    expect(gunzipSync(body).byteLength).toBeGreaterThan(body.byteLength);
  }
});

test('a stored answer is replayed in the coding that the repeat accepts', async () => {
  const key = '00000000-0000-4000-8000-00000000c0de';
  const template = 'A sentence of a large prompt. '.repeat(1500);
  const body = JSON.stringify({ name: 'large', template });
  const first = await raw('POST', '/v1/prompts', { body, 'Idempotency-Key': key, 'Accept-Encoding': 'gzip' });
  expect([first.status, first.headers['content-encoding']]).toEqual([201, 'gzip']);
  const plain = await raw('POST', '/v1/prompts', { body, 'Idempotency-Key': key });
  expect([plain.status, plain.headers['idempotency-replayed'], plain.headers['content-encoding']]).toEqual([
    201,
    'true',
    undefined,
  ]);
  expect(plain.body.toString()).toBe(gunzipSync(first.body).toString());
});
