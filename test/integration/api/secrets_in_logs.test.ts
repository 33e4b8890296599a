// No process writes a secret to its log, whatever the request and however it fails. The test runs
// real processes at log level trace, an API whose ClickHouse is down, a stored answer that cannot
// be decoded (which causes a 500) and a mail server that refuses connections. It then searches
// everything that the processes printed.
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { placeOf } from '../../../api/http/keyed_store.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { openLog } from '../../../ops/platform/nats/open_log.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { eventually } from '../../support/wait.ts';
import { type Headers, operationsOf, pathOf } from './a_cast.ts';
import { call, ORG } from './an_api.ts';

const OWNER = 'user_local';
const hex = (bytes: number): string => randomBytes(bytes).toString('hex');
const KEY = `sk_svc_${hex(16)}`;
const ADMIN_TOKEN = `admin${hex(16)}`;
const JWT_SECRET = hex(24);
const SMTP_PASSWORD = `smtp${hex(8)}`;
const CLICKHOUSE_PASSWORD = `click${hex(8)}`;
const ENCRYPTION_KEY = hex(32);
const ANALYST_PASSWORD = `analyst${hex(8)}`;

/** Secrets that must never be printed, by name. */
const secrets = new Map<string, string>(
  Object.entries({
    KEY,
    ADMIN_TOKEN,
    JWT_SECRET,
    SMTP_PASSWORD,
    CLICKHOUSE_PASSWORD,
    ENCRYPTION_KEY,
    ANALYST_PASSWORD,
  }),
);

let nats: TestNats;
let store: TestStore;
const children: ChildProcess[] = [];
let printed = '';

beforeAll(async () => {
  nats = await startTestNats();
  store = await openTestStore();
  secrets.set('nats token', new URL(nats.url).username);
  secrets.set('password of ClickHouse', new URL(store.database.url).password);
});

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await store.close();
  await nats.remove();
});

async function run(
  main: string,
  env: Record<string, string>,
): Promise<{ child: ChildProcess; said: Record<string, unknown> }> {
  const child = fork(new URL(`../../../${main}`, import.meta.url), {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      SERVICE_LOG_LEVEL: 'trace',
      SERVICE_NATS_URL: nats.url,
      SERVICE_PORT: '0',
      SERVICE_PARTITIONS: '2',
      SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
      SERVICE_BOOTSTRAP_ORG_ID: ORG,
      SERVICE_BOOTSTRAP_API_KEY: KEY,
      SERVICE_JWT_SECRET: JWT_SECRET,
      SERVICE_CLICKHOUSE_ANALYST_PASSWORD: ANALYST_PASSWORD,
      SERVICE_ENCRYPTION_KEY: ENCRYPTION_KEY,
      SERVICE_SMTP_URL: `smtp://mailer:${SMTP_PASSWORD}@127.0.0.1:9`,
      ...env,
    },
  });
  children.push(child);
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const ready = new Promise<Record<string, unknown>>((resolve) => {
    child.on('message', (message) => {
      // A worker first reports that it is starting.
      if (typeof message === 'object' && 'ready' in message) resolve(message);
    });
  });
  const said = await Promise.race([
    ready,
    once(child, 'exit').then((): never => {
      throw new Error(`it ended: ${printed.slice(-2000)}`);
    }),
  ]);
  return { child, said };
}

async function tokenOf(name: string, claims: Record<string, unknown>, secret = JWT_SECRET): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const token = await new SignJWT({ iat: now, exp: now + 3600, ...claims })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.from(secret));
  secrets.set(name, token);
  // The signature alone is a secret too, because the header and the claims can be guessed.
  secrets.set(`${name}, signature`, token.split('.')[2] ?? '');
  return token;
}

/** Records a secret that an answer shows only once. */
function remember(name: string, value: unknown): string {
  expect([name, typeof value]).toEqual([name, 'string']);
  secrets.set(name, String(value));
  return String(value);
}

const NOBODY: Headers = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined };
const bearer = (token: string): Headers => ({ ...NOBODY, 'X-Org-Id': ORG, Authorization: `Bearer ${token}` });
const asKey = (raw: string): Headers => ({ 'X-Org-Api-Key': raw, 'X-Org-Id': ORG });

test('the processes print no secret', async () => {
  const api = await run('api/main.ts', { SERVICE_CLICKHOUSE_URL: store.database.url });
  const away = await run('api/main.ts', {
    SERVICE_CLICKHOUSE_URL: `http://app:${CLICKHOUSE_PASSWORD}@127.0.0.1:9/millrace`,
  });
  const worker = await run('pipeline/main.ts', { SERVICE_CLICKHOUSE_URL: store.database.url });
  const [up, down] = [api, away].map(({ said }) => ({ url: `http://127.0.0.1:${String(said['port'])}` })) as [
    { url: string },
    { url: string },
  ];

  const owner = await tokenOf('token of the owner', { sub: OWNER, email: 'owner@example.com' });
  const forged = await tokenOf('forged token', { sub: OWNER }, hex(24));
  const expired = await tokenOf('expired token', { sub: OWNER, exp: 1000 });
  const wrongKey = remember('wrong key', `sk_svc_${hex(16)}`);
  const wrongAdmin = remember('wrong admin token', `admin${hex(16)}`);

  // Secrets that an answer shows only once.
  const made = await call(up, 'POST', `/orgs/${ORG}/api-keys`, {
    headers: bearer(owner),
    body: { name: 'one', scopes: ['*'] },
  });
  const key = remember('made key', made.json?.['raw_key']);
  const invite = await call(up, 'POST', `/orgs/${ORG}/members`, {
    headers: bearer(owner),
    body: { email: 'ann@example.com', role: 'admin' },
  });
  const inviteToken = remember('invite token', (invite.json?.['data'] as Record<string, unknown>)['token']);
  const ann = await tokenOf('token of a member', { sub: 'user_ann', email: 'ann@example.com' });
  await call(up, 'POST', `/orgs/${ORG}/members/accept`, { headers: bearer(ann), body: { token: inviteToken } });
  const transfer = await call(up, 'POST', `/orgs/${ORG}/transfer`, {
    headers: bearer(owner),
    body: { new_owner_user_id: 'user_ann' },
  });
  const transferToken = remember('transfer token', (transfer.json?.['data'] as Record<string, unknown>)['token']);
  const registers = await call(up, 'POST', `/orgs/${ORG}/agents/register-tokens`, { headers: bearer(owner) });
  const registerToken = remember(
    'register token',
    (registers.json?.['data'] as Record<string, unknown>)['register_token'],
  );
  const hook = await call(up, 'POST', `/orgs/${ORG}/webhooks`, {
    headers: bearer(owner),
    body: { url: 'http://127.0.0.1:9/hook', events: ['agent.registered', 'audit.api_key.create'] },
  });
  const hookSecret = remember('webhook secret', (hook.json?.['data'] as Record<string, unknown>)['secret']);

  // Call every operation with good and bad credentials, with secrets in the fields meant for them
  // and in other fields.
  const bodies: unknown[] = [
    { token: inviteToken },
    { token: transferToken },
    { name: 'Agent', framework: 'chain', register_token: registerToken, raw_key: key },
    { secret: hookSecret, url: `http://user:${hookSecret}@127.0.0.1:9/`, events: ['trace.started'] },
    { password: key, nested: { token: owner } },
  ];
  const credentials: Headers[] = [
    asKey(key),
    asKey(wrongKey),
    bearer(key),
    bearer(owner),
    bearer(forged),
    bearer(expired),
    bearer(ADMIN_TOKEN),
    bearer(wrongAdmin),
    { ...NOBODY, Cookie: `svc_session=${owner}`, 'X-Requested-With': 'x' },
    { ...NOBODY, Cookie: `svc_session=${forged}` },
  ];
  const statuses = new Set<number>();
  const operations = await operationsOf(up);
  for (const [index, operation] of operations.entries()) {
    for (const [at, headers] of credentials.entries()) {
      // These operations change permissions and would end the walk early, so only the wrong key
      // calls them.
      if (/transfer\/accept|\/admin\/orgs\/\{org_id\}$/.test(operation.template) && at !== 1) continue;
      const body = at % 2 === 0 ? operation.body : bodies[(index + at) % bodies.length];
      for (const one of [up, down]) {
        const answer = await call(one, operation.method, pathOf(operation.template, { org_id: ORG }), {
          headers: { ...headers, 'Idempotency-Key': randomUUID() },
          ...(operation.method === 'GET' || body === undefined ? {} : { body }),
        });
        statuses.add(answer.status);
      }
    }
  }
  // Send secrets in places where no client should put them.
  for (const secret of [key, owner, ADMIN_TOKEN]) {
    for (const path of [
      `/v1/traces?api_key=${secret}`,
      `/orgs/${secret}`,
      `/v1/traces/${secret}/tree`,
      `/${secret}`,
      `/orgs/${ORG}/ingest/${secret}`,
      `/orgs/${ORG}/ingest/app?api_key=${secret}`,
      `/orgs/${ORG}/ingest/app?${secret}`,
    ]) {
      for (const one of [up, down])
        statuses.add((await call(one, path.includes('ingest') ? 'POST' : 'GET', path, { headers: asKey(key) })).status);
    }
    const broken = await call(up, 'POST', `/orgs/${ORG}/api-keys`, {
      headers: { ...bearer(owner), 'Content-Type': 'application/json' },
      raw: `{"secret": "${secret}", `,
    });
    statuses.add(broken.status);
  }

  // Cause a 500: the record stored under the idempotency key cannot be decoded.
  const nc = await connectNats({ url: nats.url, name: 'test', waitMs: 5000 });
  const log = await openLog(nc, { replicas: 1, logBytesMax: 16 * 1024 ** 3 });
  const idempotencyKey = randomUUID();
  await (
    await log.bucket('idempotency')
  ).put(placeOf(`org:${ORG}`, `POST /orgs/${ORG}/api-keys`, idempotencyKey).at, `${key} is no record`);
  await nc.close();
  const failed = await call(up, 'POST', `/orgs/${ORG}/api-keys`, {
    headers: { ...bearer(owner), 'Idempotency-Key': idempotencyKey },
    body: { name: 'two', scopes: ['traces:read'] },
  });
  statuses.add(failed.status);
  for (const status of [200, 201, 401, 403, 404, 422, 500, 502]) expect([...statuses]).toContain(status);

  // The mails to Ann and the webhook deliveries fail, and the worker logs the failures.
  await eventually(() => /mail/i.test(printed) && /ECONNREFUSED|refused/i.test(printed), { what: 'a mail that fails' });
  for (const { child } of [api, away, worker]) {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
  expect(printed.split('\n').length).toBeGreaterThan(20);
  expect([...secrets].filter(([, secret]) => printed.includes(secret)).map(([name]) => name)).toEqual([]);
});
