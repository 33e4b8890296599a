// Access to the embedded engine: local processes and web pages without a password, and users with
// one.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { startClickHouse } from '../../../ops/launch/clickhouse/server.ts';
import { runStatement, startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { isRefused, send, type Sent } from '../sql/two_orgs.ts';

let engine: TestEngine;
const origin = (): string => `http://127.0.0.1:${engine.server.httpPort}`;
const canary = (): string => path.join(inject('folder'), 'engine_access_canary', 'canary.txt');

beforeAll(async () => {
  mkdirSync(path.dirname(canary()));
  writeFileSync(canary(), 'CONTENT_OF_A_FILE');
  engine = await startTestEngine();
});

afterAll(() => engine.remove());

const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
const WRONG_APP = basic('app:wrong');

/**
 * Requests without a valid password. The engine must reject all of them. Without the access rules
 * it answers most of them as the user `default`.
 */
const WITHOUT_PASSWORD: Record<string, Sent> = {
  'no credentials': {},
  'the parameter user=default': { url: { user: 'default' } },
  'the parameters user=default and an empty password': { url: { user: 'default', password: '' } },
  'an empty user parameter': { url: { user: '' } },
  'the header X-ClickHouse-User: default': { headers: { 'X-ClickHouse-User': 'default' } },
  'the header x-clickhouse-user: default': { headers: { 'x-clickhouse-user': 'default', 'x-clickhouse-key': '' } },
  'the header X-ClickHouse-User: DEFAULT': { headers: { 'X-ClickHouse-User': 'DEFAULT' } },
  'an empty header X-ClickHouse-User': { headers: { 'X-ClickHouse-User': '' } },
  'Basic credentials of default': { headers: { Authorization: basic('default:') } },
  'Basic credentials of default, with the scheme in lower case': {
    headers: { Authorization: basic('default:').replace('B', 'b') },
  },
  'Basic credentials without a user': { headers: { Authorization: basic(':') } },
  'Basic credentials of app and user=default': { headers: { Authorization: WRONG_APP }, url: { user: 'default' } },
  'Basic credentials of app and an empty password parameter': {
    headers: { Authorization: WRONG_APP },
    url: { password: '' },
  },
  'Basic credentials of app and X-ClickHouse-User: default': {
    headers: { Authorization: WRONG_APP, 'X-ClickHouse-User': 'default' },
  },
  'Basic credentials of app and X-ClickHouse-Key': { headers: { Authorization: WRONG_APP, 'X-ClickHouse-Key': 'x' } },
  'X-ClickHouse-User: app and user=default': { headers: { 'X-ClickHouse-User': 'app' }, url: { user: 'default' } },
  'X-ClickHouse-User: app and Basic credentials of default': {
    headers: { 'X-ClickHouse-User': 'app', Authorization: basic('default:') },
  },
  'X-ClickHouse-User twice, default first': { headers: { 'X-ClickHouse-User': ['default', 'app'] } },
  'X-ClickHouse-User twice, app first': { headers: { 'X-ClickHouse-User': ['app', 'default'] } },
  'Authorization twice, app first': { headers: { Authorization: [WRONG_APP, basic('default:')] } },
  'Authorization: never, as the page /play sends it': { headers: { Authorization: 'never' } },
  'Authorization: never and user=default': { headers: { Authorization: 'never' }, url: { user: 'default' } },
  'Authorization: Negotiate': { headers: { Authorization: 'Negotiate YII=' } },
  'Authorization: Bearer': { headers: { Authorization: 'Bearer x' } },
  'a session of default': {
    headers: { Authorization: 'never' },
    url: { session_id: 'x', max_sessions_for_user: '100' },
  },
  'the header X-ClickHouse-SSL-Certificate-Auth': {
    headers: { 'X-ClickHouse-User': 'app', 'X-ClickHouse-SSL-Certificate-Auth': 'on' },
  },
  'the user app without a password': { headers: { 'X-ClickHouse-User': 'app' } },
  'the user analyst without a password': { headers: { 'X-ClickHouse-User': 'analyst' } },
  'the user org_analyst without a password': { headers: { 'X-ClickHouse-User': 'org_analyst' } },
  'the user analyst without a password, as parameters': {
    headers: { Authorization: 'never' },
    url: { user: 'analyst', password: '' },
  },
  'the user org_reader, as whom nobody logs in': { headers: { 'X-ClickHouse-User': 'org_reader' } },
  'a form with user=default': {
    headers: { Authorization: WRONG_APP, 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'user=default&password=&query=SELECT 1',
  },
};

describe('the HTTP port of the embedded engine', () => {
  it.each(Object.entries(WITHOUT_PASSWORD))('the engine rejects a request with %s', async (_, sent) => {
    for (const query of ['SELECT user()', `SELECT file('${canary()}')`, 'SYSTEM STOP LISTEN HTTP'])
      for (const method of ['POST', 'GET']) {
        const reply = await send(origin(), {
          method,
          ...sent,
          url: { ...sent.url, query },
          ...(method === 'GET' ? { body: '' } : {}),
        });
        expect([reply.status === 200, isRefused(reply), reply.text]).toEqual([false, true, reply.text]);
        expect(reply.text).not.toMatch(/^default|CONTENT_OF_A_FILE/);
      }
    expect((await send(`${origin()}/ping`, { method: 'GET' })).text).toBe('Ok.\n');
  });

  it('the engine answers a user with a password, by header, by Basic credentials, and as the page /play does', async () => {
    for (const [user, password] of [
      ['app', 'test-app-password'],
      ['analyst', 'test-analyst-password'],
    ] as const) {
      const replies = [
        await send(origin(), {
          body: 'SELECT user()',
          headers: { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password },
        }),
        await send(origin(), { body: 'SELECT user()', headers: { Authorization: basic(`${user}:${password}`) } }),
        await send(origin(), { body: 'SELECT user()', headers: { Authorization: 'never' }, url: { user, password } }),
      ];
      expect(replies.map(({ status, text }) => [status, text])).toEqual(replies.map(() => [200, `${user}\n`]));
    }
    expect((await send(`${origin()}/play`, { method: 'GET' })).text).toContain('<!DOCTYPE html>');
  });

  it.each([
    '/',
    '/dashboard',
    '/webterminal',
    '/replicas_status',
    '/binary',
    '/merges',
    '/jemalloc',
    '/schema',
    '/docs',
    '/metrics',
    '/js/uplot.js',
  ])('the engine answers 404 to GET %s without credentials', async (page) => {
    expect((await send(`${origin()}${page}`, { method: 'GET' })).status).toBe(404);
  });

  it.each([
    ['of another origin', { Origin: 'http://evil.example', 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'cors' }],
    [
      'whose own name was rebound to this machine',
      { Host: 'evil.example:8123', Origin: 'http://evil.example:8123', 'Sec-Fetch-Site': 'same-origin' },
    ],
    [
      'without an origin, in a sandbox',
      { Origin: 'null', 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' },
    ],
  ])('the engine gives a web page %s nothing', async (_, headers) => {
    for (const sent of Object.values(WITHOUT_PASSWORD)) {
      const url = { ...sent.url, add_http_cors_header: '1', query: `SELECT file('${canary()}')` };
      const reply = await send(origin(), { ...sent, url, headers: { ...sent.headers, ...headers } });
      expect([isRefused(reply), reply.text.includes('CONTENT_OF_A_FILE')]).toEqual([true, false]);
    }
    const preflight = await send(origin(), {
      method: 'OPTIONS',
      url: { add_http_cors_header: '1' },
      headers: {
        ...headers,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization',
      },
    });
    expect([preflight.status >= 400, preflight.headers['access-control-allow-origin']]).toEqual([true, undefined]);
  });

  it.runIf(process.platform === 'linux')('the engine listens on its HTTP port only', () => {
    expect(listeningPorts(engine.server.pid)).toEqual([engine.server.httpPort]);
  });

  it('the engine rejects the same requests after kill -9 and a restart', async () => {
    await engine.kill();
    await engine.start();
    for (const sent of Object.values(WITHOUT_PASSWORD)) {
      const reply = await send(origin(), { ...sent, url: { ...sent.url, query: 'SELECT user()' } });
      expect([reply.status === 200, isRefused(reply)]).toEqual([false, true]);
    }
    await expect(runStatement(engine.analystUrl, `SELECT file('${canary()}')`, '')).rejects.toThrow('getcwd');
  });

  it('the engine does not start with an empty password', async () => {
    const options = {
      dataDir: path.join(inject('folder'), 'no_password', 'clickhouse'),
      httpPort: 0,
      appPassword: 'x',
      analystPassword: 'x',
      database: 'millrace',
      logFile: path.join(inject('folder'), 'no_password', 'clickhouse.log'),
      memoryMaxBytes: 1_000_000_000,
    };
    await expect(startClickHouse({ ...options, appPassword: '' })).rejects.toThrow('password');
    await expect(startClickHouse({ ...options, analystPassword: '' })).rejects.toThrow('password');
  });
});

describe('the scalar function file()', () => {
  it('the function file() reads no file for any user, whatever its path and however it is called', async () => {
    for (const file of [canary(), '/etc/hostname', '/proc/self/cmdline', 'x', '', '.', '/dev/null'])
      for (const call of [
        `SELECT file('${file}')`,
        `SELECT file('${file}', 'x')`,
        `SELECT file('${file}', NULL)`,
        `SELECT arrayMap(file, ['${file}'])`,
      ])
        for (const url of [engine.url, engine.analystUrl])
          await expect(runStatement(url, call, '')).rejects.toThrow('getcwd');
  });
});

describe.runIf(process.platform === 'linux')('the confinement of a process by Landlock', () => {
  it('Landlock leaves only the named files readable to the engine', () => {
    const module = pathToFileURL(path.resolve(import.meta.dirname, '../../../ops/launch/clickhouse/confine.ts')).href;
    const program = `
      import { readFileSync } from 'node:fs';
      import { confine } from '${module}';
      const codeOf = (file) => { try { readFileSync(file); return 'read'; } catch (error) { return error.code; } };
      const confined = confine({ readable: ['/etc/hostname'], executable: [], writable: ['${path.dirname(canary())}'] });
      console.log(JSON.stringify([confined, ...['/etc/hostname', '${canary()}', '/etc/passwd', '/proc/${process.pid}/environ'].map(codeOf)]));`;
    const told = execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
    expect(JSON.parse(told)).toEqual([true, 'read', 'read', 'EACCES', 'EACCES']);
  });
});

/** Returns the TCP ports that a process listens on, from its open sockets. */
function listeningPorts(pid: number): number[] {
  const sockets = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return [/^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]];
      } catch {
        return [];
      }
    }),
  );
  const LISTEN = '0A';
  return ['tcp', 'tcp6'].flatMap((family) =>
    readFileSync(`/proc/${pid}/net/${family}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === LISTEN && sockets.has(fields[9]))
      .map((fields) => parseInt(fields[1]?.split(':')[1] ?? '', 16)),
  );
}
