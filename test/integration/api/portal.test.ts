// The portal over HTTP: which requests get the page, with which headers, how files are served, and what a browser sees
// while the files are being built. The files are those of a small folder in the form of a build.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import path from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { call, startTestApi, type TestApi } from './an_api.ts';

const HTML = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const SCRIPT = `export const portal = '${'a portal '.repeat(400)}';`;

let nats: TestNats;
let folder: string;
let api: TestApi;
beforeAll(async () => {
  nats = await startTestNats();
  folder = tempDir('portal');
  writeBuild(path.join(folder, 'build'));
  api = await startTestApi({ natsUrl: nats.url, portalDir: path.join(folder, 'build') });
});
afterAll(async () => {
  await api.close();
  await nats.remove();
  removeDir(folder);
});

/** Writes a build of an entry and one screen, whole at once as the builder does. */
function writeBuild(at: string): void {
  const making = `${at}.making`;
  mkdirSync(path.join(making, 'assets'), { recursive: true });
  const manifest = {
    'early.ts': { file: 'assets/early-i1.js', src: 'early.ts', isEntry: true },
    'main.tsx': {
      file: 'assets/main-a1.js',
      src: 'main.tsx',
      isEntry: true,
      imports: ['_shared.js'],
    },
    '_shared.js': { file: 'assets/shared-b1.js' },
    'screens/traces/traces_screen.tsx': {
      file: 'assets/traces_screen-d1.js',
      isDynamicEntry: true,
      imports: ['_shared.js', '_list.js'],
    },
    '_list.js': { file: 'assets/list-f1.js' },
    'style.css': { file: 'assets/style-c1.css', src: 'style.css' },
    '../node_modules/fonts/files/inter-latin-wght-normal.woff2': { file: 'assets/inter-h1.woff2' },
    'screens/me/me_screen.tsx': { file: 'assets/me_screen-g1.js', isDynamicEntry: true },
  };
  writeFileSync(path.join(making, 'manifest.json'), JSON.stringify(manifest));
  writeFileSync(path.join(making, 'assets/main-a1.js'), SCRIPT);
  writeFileSync(path.join(making, 'assets/main-a1.js.br'), brotliCompressSync(SCRIPT));
  writeFileSync(path.join(making, 'assets/main-a1.js.gz'), gzipSync(SCRIPT));
  writeFileSync(path.join(making, 'assets/inter-h1.woff2'), 'font');
  writeFileSync(path.join(making, 'assets/secret.txt'), 'no type of the portal');
  renameSync(making, at);
}

const page = (at: string, headers: Record<string, string | undefined> = {}, by = api) =>
  call(by, 'GET', at, { headers: { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Accept: HTML, ...headers } });

interface Raw {
  status: number;
  headers: Record<string, unknown>;
  body: Buffer;
}

/** Sends a request whose answer is not decompressed. */
function raw(method: string, at: string, headers: Record<string, string> = {}): Promise<Raw> {
  return new Promise((resolve, reject) => {
    request({ port: api.port, method, path: at, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      });
    })
      .on('error', reject)
      .end();
  });
}

describe('the page', () => {
  test.each([
    '/',
    '/login',
    '/o/org_test',
    '/o/org_test/traces',
    '/o/org_test/traces/trc_1',
    '/operator/jobs',
    '/o/x/?a=b',
  ])('the page is at %s for a browser', async (at) => {
    const answer = await page(at);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(answer.text).toContain('<script type="module" src="/portal/assets/main-a1.js"></script>');
    // The first requests do not wait for the other scripts.
    expect(answer.text).toContain('<script type="module" async src="/portal/assets/early-i1.js"></script>');
    expect(answer.text).toContain('<title>Millrace</title>');
    expect(Buffer.byteLength(answer.text)).toBeLessThanOrEqual(2048);
  });

  test('the page has status 404 at an unknown address of the portal', async () => {
    for (const at of ['/o/org_test/nowhere', '/o', '/login/a/b']) {
      const answer = await page(at);
      expect([at, answer.status, answer.text.includes('/portal/assets/main-a1.js')]).toEqual([at, 404, true]);
    }
  });

  test('the page is not at addresses of the API, whatever is accepted', async () => {
    for (const at of ['/v1/nowhere', '/orgs', '/portal', '/portal/assets/', '/admin', '/traces']) {
      const answer = await page(at);
      expect([at, answer.status, answer.json?.['code']]).toEqual([at, 404, 'not_found']);
    }
    expect((await page('/docs')).text).toContain('Millrace: LLM observability');
  });

  test.each([undefined, '*/*', 'application/json', 'application/json, text/html;q=0.5'])(
    'a program that accepts %s gets the JSON error that it got without a portal',
    async (accept) => {
      for (const at of ['/', '/o/org_test/traces', '/login']) {
        const answer = await page(at, { Accept: accept });
        expect([at, answer.status, answer.json?.['code']]).toEqual([at, 404, 'not_found']);
      }
    },
  );

  test('other methods than GET and HEAD are not answered by the page', async () => {
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await raw(method, '/login', { Accept: HTML })).status).toBe(404);
    const head = await raw('HEAD', '/login', { Accept: HTML });
    expect([head.status, head.body.byteLength]).toEqual([200, 0]);
    expect(Number(head.headers['content-length'])).toBeGreaterThan(500);
  });

  test('the page names the chunks of the entry and of the asked page, and of no other page', async () => {
    const { text } = await page('/o/org_test/traces');
    const preloaded = [...text.matchAll(/rel=modulepreload href=([^ >]+)/g)].map(([, href]) => href);
    expect(preloaded).toEqual([
      '/portal/assets/traces_screen-d1.js',
      '/portal/assets/shared-b1.js',
      '/portal/assets/list-f1.js',
    ]);
    expect([...text.matchAll(/rel=stylesheet href="([^"]+)"/g)].map(([, href]) => href)).toEqual([
      '/portal/assets/style-c1.css',
    ]);
    expect(text).toContain('<link rel=preload as=font type=font/woff2 crossorigin href=/portal/assets/inter-h1.woff2>');
    expect((await page('/o/org_test/me')).text).toContain('/portal/assets/me_screen-g1.js');
  });

  test('the page has the strict headers', async () => {
    const { headers } = await page('/o/org_test/traces');
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types own-workers",
    );
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('permissions-policy')).toContain('camera=()');
    expect(headers.get('x-request-id')).not.toBeNull();
    expect(headers.get('set-cookie')).toBeNull();
  });
});

describe('a file', () => {
  const FILE = '/portal/assets/main-a1.js';

  test('a file is immutable for a year, also for a browser with a session cookie', async () => {
    const { status, headers, body } = await raw('GET', FILE, { Cookie: 'svc_session=a.b.c' });
    expect([status, headers['content-type'], headers['cache-control'], headers['vary']]).toEqual([
      200,
      'text/javascript; charset=utf-8',
      'public, max-age=31536000, immutable',
      'Accept-Encoding',
    ]);
    expect(headers['content-encoding']).toBeUndefined();
    expect(headers['cross-origin-resource-policy']).toBe('same-origin');
    expect(body.toString()).toBe(SCRIPT);
  });

  test('a file is sent in the coding that the browser prefers', async () => {
    const br = await raw('GET', FILE, { 'Accept-Encoding': 'gzip, deflate, br, zstd' });
    expect([br.headers['content-encoding'], brotliDecompressSync(br.body).toString()]).toEqual(['br', SCRIPT]);
    const gz = await raw('GET', FILE, { 'Accept-Encoding': 'gzip, br;q=0' });
    expect([gz.headers['content-encoding'], gunzipSync(gz.body).toString()]).toEqual(['gzip', SCRIPT]);
    const head = await raw('HEAD', FILE, { 'Accept-Encoding': 'br' });
    expect([head.headers['content-length'], head.body.byteLength]).toEqual([String(br.body.byteLength), 0]);
    const font = await raw('GET', '/portal/assets/inter-h1.woff2', { 'Accept-Encoding': 'br' });
    expect([font.headers['content-type'], font.headers['content-encoding']]).toEqual(['font/woff2', undefined]);
  });

  test.each([
    'nothing.js',
    '../manifest.json',
    '..%2Fmanifest.json',
    '%2e%2e/manifest.json',
    'main-a1.js.br',
    'secret.txt',
    'main-a1.js/',
    '%00',
    '',
  ])('no file is at %j', async (name) => {
    const answer = await raw('GET', `/portal/assets/${name}`);
    expect([answer.status, String(answer.body)]).toEqual([404, expect.stringContaining('not_found')]);
  });
});

describe('a portal that is being built', () => {
  test('a browser gets a page that loads itself again until the files are there, then the portal', async () => {
    const later = path.join(folder, 'later');
    const other = await startTestApi({ natsUrl: nats.url, portalDir: later });
    try {
      const waiting = await page('/login', {}, other);
      expect([waiting.status, waiting.headers.get('retry-after')]).toEqual([503, '1']);
      expect(waiting.text).toContain('location.reload()');
      expect(waiting.headers.get('cache-control')).toBe('no-store');
      expect((await page('/portal/assets/main-a1.js', {}, other)).status).toBe(404);
      expect((await page('/login', { Accept: '*/*' }, other)).status).toBe(404);
      writeBuild(later);
      expect((await page('/login', {}, other)).text).toContain('/portal/assets/main-a1.js');
    } finally {
      await other.close();
    }
  });

  test('a browser gets the reason when the build has failed, as text', async () => {
    const failed = path.join(folder, 'failed');
    writeFileSync(`${failed}.failed`, 'main.tsx:3: <img src=x> is not closed');
    const other = await startTestApi({ natsUrl: nats.url, portalDir: failed });
    try {
      const answer = await page('/', {}, other);
      expect(answer.status).toBe(503);
      expect(answer.text).toContain('main.tsx:3: &lt;img src=x&gt; is not closed');
      expect(answer.text).not.toContain('reload');
    } finally {
      await other.close();
    }
  });
});

describe('without a portal', () => {
  test('a browser is led to the documentation, and addresses of the portal are not found', async () => {
    const other = await startTestApi({ natsUrl: nats.url });
    try {
      const start = await fetch(`${other.url}/`, { headers: { Accept: HTML }, redirect: 'manual' });
      expect([start.status, start.headers.get('location')]).toEqual([302, '/docs']);
      for (const at of ['/login', '/o/org_test', '/portal/assets/main-a1.js'])
        expect([at, (await page(at, {}, other)).json?.['code']]).toEqual([at, 'not_found']);
    } finally {
      await other.close();
    }
  });
});
