// The addresses that deliveries may connect to: every spelling of a private address is rejected, by
// name or by number.
import { readFileSync } from 'node:fs';
import type { LookupAddress } from 'node:dns';
import { isIP } from 'node:net';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  type Address,
  allowedAddresses,
  guardedLookup,
  Refused,
  type Resolve,
} from '../../../pipeline/delivery/ssrf.ts';
import { WebhookClient } from '../../../pipeline/delivery/webhook_client.ts';
import { whyNotPublic } from '../../../pipeline/domain/webhooks/public_addresses.ts';
import { hostOf, webhookUrlProblem } from '../../../pipeline/domain/webhooks/url.ts';

const vectors = z
  .object({ refused: z.record(z.string(), z.array(z.string())), public: z.array(z.string()) })
  .parse(JSON.parse(readFileSync(new URL('./ssrf_vectors.json', import.meta.url), 'utf8')));
const refused = Object.entries(vectors.refused).flatMap(([kind, hosts]) => hosts.map((host) => [kind, host] as const));
const noNames: Resolve = (host) => Promise.reject(new Error(`no name is looked up here: ${host}`));
const outside = { publicOnly: true, resolve: noNames };
const answers = (...addresses: string[]): Address[] =>
  addresses.map((address) => ({ address, family: isIP(address) === 6 ? 6 : 4 }));

describe('addresses', () => {
  it('the tested addresses are numerous and distinct', () => {
    const all = [...refused.map(([, host]) => host), ...vectors.public];
    expect(all.length).toBeGreaterThanOrEqual(80);
    expect(new Set(all).size).toBe(all.length);
  });

  it.each(refused)('the address %s: %s is rejected, at once and at the connection', async (_, host) => {
    const url = new URL(`https://${host}/hook`);
    expect(isIP(hostOf(url))).not.toBe(0);
    expect(whyNotPublic(hostOf(url))).not.toBeNull();
    expect(webhookUrlProblem(url.href, { development: false })).toMatch(/public Internet/);
    await expect(allowedAddresses(hostOf(url), outside)).rejects.toThrow(Refused);
  });

  it.each(vectors.public)('the address %s is permitted', async (host) => {
    const url = new URL(`https://${host}/hook`);
    expect(webhookUrlProblem(url.href, { development: false })).toBeNull();
    expect(await allowedAddresses(hostOf(url), outside)).toEqual(answers(hostOf(url)));
  });

  it('an address with a zone, or an invalid one, is rejected', () => {
    for (const text of ['fe80::1%eth0', '2606:4700::1%1', 'example.com', '', '1.2.3', '1.2.3.4.5'])
      expect(whyNotPublic(text)).not.toBeNull();
  });
});

describe('names', () => {
  const named = (addresses: Address[]) => ({ publicOnly: true, resolve: () => Promise.resolve(addresses) });

  it('a name is rejected when any answer is not public, whatever the others are', async () => {
    for (const inside of ['10.0.0.1', '169.254.169.254', '::1', '::ffff:10.0.0.1', 'fd00::1'])
      for (const order of [answers('1.1.1.1', inside), answers(inside, '1.1.1.1')])
        await expect(allowedAddresses('receiver.example', named(order))).rejects.toThrow(Refused);
    expect(await allowedAddresses('receiver.example', named(answers('1.1.1.1', '2606:4700::1')))).toHaveLength(2);
  });

  it('a name of this machine is this machine, whatever a resolver says', async () => {
    for (const name of ['localhost', 'LOCALHOST', 'localhost.', 'a.localhost'])
      await expect(allowedAddresses(name, named(answers('1.1.1.1')))).rejects.toThrow(Refused);
    expect(
      (await allowedAddresses('localhost', { publicOnly: false, resolve: noNames })).map(({ address }) => address),
    ).toEqual(['127.0.0.1', '::1']);
  });

  it('a name is resolved once a connection, and the socket gets the checked address', async () => {
    let asked = 0;
    const lookup = guardedLookup({
      publicOnly: true,
      // A second resolution would be the attack: it must not happen.
      resolve: () => Promise.resolve(asked++ === 0 ? answers('1.1.1.1', '2606:4700::1') : answers('127.0.0.1')),
    });
    const ask = (options: { all?: boolean; family?: number }) =>
      new Promise<string | LookupAddress[]>((resolve, reject) => {
        lookup('receiver.example', options, (error, address) => {
          if (error === null) resolve(address);
          else reject(error);
        });
      });
    expect(await ask({ all: true })).toEqual(answers('1.1.1.1', '2606:4700::1'));
    expect(asked).toBe(1);
    await expect(ask({ all: true })).rejects.toThrow(Refused);
    asked = 0;
    expect(await ask({ family: 6 })).toBe('2606:4700::1');
  });

  it('a name that cannot be resolved is an error, not a rejection', async () => {
    const resolve = () => Promise.reject(new Error('the name of the receiver has no address'));
    await expect(allowedAddresses('receiver.example', { publicOnly: true, resolve })).rejects.not.toThrow(Refused);
  });
});

describe('the client outside development', () => {
  const attempt = (url: string) => ({
    url,
    headers: {},
    body: Buffer.from('{}'),
    timeoutMs: 2000,
    signal: new AbortController().signal,
  });

  it.each([
    'http://127.0.0.1:9/',
    'http://[::1]:9/',
    'http://2130706433:9/',
    'http://localhost:9/',
    'http://inside.example:9/',
  ])('outside development the client connects to nothing at %s', async (url) => {
    const client = new WebhookClient({ publicOnly: true, resolve: () => Promise.resolve(answers('10.0.0.1')) });
    const { status, error } = await client.post(attempt(url));
    client.close();
    expect(status).toBeNull();
    expect(error).toMatch(/^refused: /);
    expect(error).not.toMatch(/\d/);
  });
});

describe('addresses of webhooks', () => {
  const dev = { development: true };
  it.each([
    'https://example.com/hook?x=1',
    'http://localhost:9000/hook',
    'http://127.0.0.1:9000',
    'HTTPS://EXAMPLE.com',
    'https://10.0.0.1/',
    'http://0x7f.1/',
  ])('the webhook URL %s is accepted in development', (url) => {
    expect(webhookUrlProblem(url, dev)).toBeNull();
  });

  it.each([
    'http://example.com/',
    'http://10.0.0.1/',
    'http://[::1]/',
    'http://127.0.0.2/',
    'http://localhost.example/',
    'ftp://localhost/',
    'https://user@example.com/',
    'https://user:pass@example.com/',
    'https://:pass@example.com/',
    'https://example.com/#part',
    'https://example.com/#',
    'https:example.com',
    'https://',
    'example.com',
    ' https://example.com',
    '',
    'javascript:alert(1)',
    `https://example.com/${'a'.repeat(2048)}`,
  ])('the webhook URL %s is rejected in development too', (url) => {
    expect(webhookUrlProblem(url, dev)).not.toBeNull();
  });

  it.each([
    'http://localhost:9000/',
    'http://127.0.0.1/',
    'https://localhost/',
    'https://a.localhost/',
    'https://localhost./',
  ])('the webhook URL %s is rejected outside development', (url) => {
    expect(webhookUrlProblem(url, { development: false })).not.toBeNull();
  });
});
