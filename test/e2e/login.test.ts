// Getting into the portal of a service that was just started: the link that the start prints, the link that
// `npm run login` prints, and the portal behind them.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { serviceDir, startService, type TestService } from '../support/service.ts';
import { eventually } from '../support/wait.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const LINK = /http:\/\/127\.0\.0\.1:\d+\/login#([A-Za-z0-9_-]{43})/;
/** A build takes seconds; this is for a machine that is busy with other tests. */
const BUILT_MS_MAX = 120_000;
const run = promisify(execFile);

const dataDir = serviceDir();
let service: TestService;
beforeAll(async () => {
  service = await startService({ dataDir });
});

const ticketOf = (text: string): string => LINK.exec(text)?.[1] ?? '';

/** Uses a ticket as the login page does. */
const use = (ticket: string): Promise<Response> =>
  fetch(`${service.baseUrl}/v1/session/ticket`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' },
    body: JSON.stringify({ ticket }),
  });

const login = (env: Record<string, string> = {}) =>
  run(process.execPath, ['ops/tools/login.ts'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], SERVICE_DATA_DIR: dataDir, ...env },
  });

it('the start prints a link that logs in once, into the organization in which the demo sends its data', async () => {
  const ticket = ticketOf(service.stdout());
  const first = await use(ticket);
  expect(first.status).toBe(201);
  expect(((await first.json()) as { data: unknown }).data).toMatchObject({
    user_id: 'user_local',
    orgs: [{ org_id: service.orgId, role: 'owner' }],
  });
  expect((await use(ticket)).status).toBe(401);
});

it('npm run login prints another link', async () => {
  const { stdout } = await login();
  expect((await use(ticketOf(stdout))).status).toBe(201);
});

it('npm run login refuses where an identity provider names the people', async () => {
  await expect(login({ SERVICE_JWT_JWKS_URL: 'https://id.example/keys' })).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('login links work in development without SERVICE_JWT_JWKS_URL') as string,
  });
});

it('the page behind the link appears as soon as the portal is built', async () => {
  const page = () => fetch(`${service.baseUrl}/login`, { headers: { Accept: 'text/html' } });
  await eventually(async () => (await page()).status === 200, { withinMs: BUILT_MS_MAX, what: 'the built portal' });
  const html = await (await page()).text();
  const entries = [...html.matchAll(/<script [^>]*src="(\/portal\/assets\/[^"]+\.js)"/g)].map(([, src = '']) => src);
  expect(entries).toHaveLength(2);
  for (const entry of entries) {
    const script = await fetch(service.baseUrl + entry);
    expect([script.status, script.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
  }
});

it('no ticket is in a log, nor npm run login usable after the end', async () => {
  const tickets = [...service.stdout().matchAll(new RegExp(LINK, 'g'))].map(([, ticket]) => ticket ?? '');
  expect((await service.stop()).code).toBe(0);
  for (const name of readdirSync(path.join(dataDir, 'logs'), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.log')) continue;
    const text = readFileSync(path.join(dataDir, 'logs', name), 'utf8');
    for (const ticket of tickets) expect([name, text.includes(ticket)]).toEqual([name, false]);
  }
  await expect(login()).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('does not run; start it first (npm start)') as string,
  });
});
