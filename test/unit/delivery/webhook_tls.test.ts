// Deliveries over TLS go only to a receiver with a trusted, valid certificate for the URL's host.
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import tls from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebhookClient } from '../../../pipeline/delivery/webhook_client.ts';

/** Certificates made for these tests: `other` is for another host, `expired` is out of date. */
const file = (name: string): string => readFileSync(new URL(`../../data/tls/${name}`, import.meta.url), 'utf8');

const servers: Server[] = [];
const trustedBefore = tls.getCACertificates();

async function serve(certificate: string, key: string, answer = 200): Promise<{ url: string; bodies: string[] }> {
  const bodies: string[] = [];
  const server = createServer({ cert: file(certificate), key: file(key) }, (req, res) => {
    let body = '';
    req.on('data', (chunk: Buffer) => (body += chunk.toString()));
    req.on('end', () => {
      bodies.push(body);
      res.writeHead(answer, { Location: '/elsewhere' }).end();
    });
  });
  // A client that aborts its handshake is not a failure of the server.
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  return { url: `https://localhost:${(server.address() as AddressInfo).port}/hook`, bodies };
}

async function post(url: string) {
  const client = new WebhookClient({
    publicOnly: false,
    resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
  });
  try {
    const body = Buffer.from('{"event":"trace.completed"}');
    return await client.post({ url, headers: {}, body, timeoutMs: 20_000, signal: new AbortController().signal });
  } finally {
    client.close();
  }
}

describe('a delivery over TLS', () => {
  beforeAll(() => {
    tls.setDefaultCACertificates([...trustedBefore, file('ca.pem')]);
  });
  afterEach(() => {
    for (const server of servers.splice(0)) server.close().closeAllConnections();
  });
  afterAll(() => {
    tls.setDefaultCACertificates(trustedBefore);
  });

  it('a delivery reaches a receiver whose certificate is trusted and names its host', async () => {
    const { url, bodies } = await serve('localhost.pem', 'localhost.key');
    expect(await post(url)).toMatchObject({ status: 200, error: null });
    expect(bodies).toEqual(['{"event":"trace.completed"}']);
  });

  it('a delivery follows no redirect', async () => {
    const { url, bodies } = await serve('localhost.pem', 'localhost.key', 307);
    expect(await post(url)).toMatchObject({ status: 307 });
    expect(bodies).toHaveLength(1);
  });

  it.each([
    ['is of another host', 'other.pem', 'other.key', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['is out of date', 'expired.pem', 'localhost.key', 'CERT_HAS_EXPIRED'],
  ])('a delivery is not sent to a receiver whose certificate %s', async (_, certificate, key, code) => {
    const { url, bodies } = await serve(certificate, key);
    expect(await post(url)).toMatchObject({ status: null, error: `the connection failed: ${code}` });
    expect(bodies).toEqual([]);
  });

  it('a delivery is not sent to a receiver whose certificate is untrusted', async () => {
    tls.setDefaultCACertificates(trustedBefore);
    const { url, bodies } = await serve('localhost.pem', 'localhost.key');
    const { status, error } = await post(url);
    expect(status).toBeNull();
    expect(error).toMatch(/^the connection failed: [A-Z_]+$/);
    expect(bodies).toEqual([]);
    tls.setDefaultCACertificates([...trustedBefore, file('ca.pem')]);
  });
});
