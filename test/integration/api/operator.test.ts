// The operator's session, and what the operator reads and changes of the whole service: its state, its scheduled jobs
// and its dead letters. With a real worker and the real engine.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { deadEvent, deadMail } from '../../support/dead_letters.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { asOperator } from '../a_tenant.ts';
import { onceFree } from './a_job.ts';
import { ADMIN_TOKEN, type Answer, call, ORG, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let database: TestDatabase;
let api: TestApi;
let worker: TestWorker;
let ahead = 0;

beforeAll(async () => {
  [nats, database] = await Promise.all([startTestNats(), createTestDatabase()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url, now: () => Date.now() + ahead });
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
  await eventually(async () => (await call(api, 'GET', '/readyz')).status === 200, {
    what: 'readiness',
    withinMs: 60_000,
  });
}, 90_000);

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await api.close();
  await database.drop();
  await nats.remove();
});

const operator = (method: string, path: string, body?: unknown): Promise<Answer> =>
  call(api, method, path, { headers: asOperator, ...(body === undefined ? {} : { body }) });
const dataOf = ({ json }: Answer): unknown => json?.['data'];

interface Letter {
  seq: number;
  stage: string;
  org_id: string | null;
  trace_id: string | null;
  replayable: boolean;
  body?: string;
}
const letters = async (query = ''): Promise<Letter[]> =>
  dataOf(await operator('GET', `/admin/dead-letters${query}`)) as Letter[];
/** Returns the newest letter of a trace. */
async function letterOf(trace_id: string): Promise<Letter> {
  const found = (await letters('?limit=200')).findLast((one) => one.trace_id === trace_id);
  if (found === undefined) throw new Error(`no dead letter of ${trace_id}`);
  return found;
}

describe("the operator's session", () => {
  const none = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined };
  const begin = () => operator('POST', '/admin/session');
  const withCookie = (cookie: string, more: Record<string, string> = {}) => ({ ...none, Cookie: cookie, ...more });
  const cookieOf = ({ headers }: Answer): string => (headers.get('set-cookie') ?? '').split(';')[0] ?? '';

  test('the token is exchanged for an HttpOnly cookie for /admin that lasts an hour', async () => {
    const answer = await begin();
    expect(answer.status).toBe(201);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const [cookie = '', ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ');
    expect(cookie.startsWith('svc_operator=')).toBe(true);
    expect(cookie).not.toContain(ADMIN_TOKEN);
    expect(attributes).toEqual(['Path=/admin', 'Max-Age=3600', 'HttpOnly', 'SameSite=Strict']);
    const read = await call(api, 'GET', '/admin/session', { headers: withCookie(cookie) });
    expect(dataOf(read)).toEqual(dataOf(answer));
    expect((await call(api, 'GET', '/admin/orgs', { headers: withCookie(cookie) })).headers.get('cache-control')).toBe(
      'no-store',
    );
  });

  test('a request that changes something is refused unless a page of this origin sent it', async () => {
    const cookie = cookieOf(await begin());
    const post = (more: Record<string, string>) =>
      call(api, 'POST', '/admin/jobs/alerts/run', { headers: withCookie(cookie, more), body: {} });
    expect((await post({ 'Sec-Fetch-Site': 'cross-site' })).json?.['code']).toBe('forbidden');
    expect((await post({})).json?.['code']).toBe('forbidden');
    expect((await onceFree(() => post({ 'Sec-Fetch-Site': 'same-origin' }))).status).toBe(200);
  });

  test('a changed cookie, one of another token, and the cookie of a person are refused', async () => {
    const cookie = cookieOf(await begin());
    const later = cookie.replace(/=\d+/, '=9999999999');
    for (const headers of [withCookie(later), withCookie(`${cookie}; svc_operator=1.a.b`), withCookie('svc_operator=')])
      expect((await call(api, 'GET', '/admin/orgs', { headers })).json?.['code']).toBe('unauthenticated');
    const other = await startTestApi({ natsUrl: nats.url, adminToken: 'another-operator-token' });
    try {
      expect((await call(other, 'GET', '/admin/orgs', { headers: withCookie(cookie) })).status).toBe(401);
    } finally {
      await other.close();
    }
  });

  test('a session ends after an hour, does not extend itself, and is no session of an organization', async () => {
    const cookie = cookieOf(await begin());
    const page = withCookie(cookie, { 'Sec-Fetch-Site': 'same-origin' });
    expect((await call(api, 'POST', '/admin/session', { headers: page })).status).toBe(401);
    expect((await call(api, 'GET', '/v1/session', { headers: withCookie(cookie) })).status).toBe(401);
    ahead = 3_600_000;
    try {
      expect((await call(api, 'GET', '/admin/orgs', { headers: withCookie(cookie) })).status).toBe(401);
    } finally {
      ahead = 0;
    }
    const end = await call(api, 'DELETE', '/admin/session', { headers: page });
    expect(end.headers.get('set-cookie')).toContain('Max-Age=0');
  });
});

describe('the state of the service', () => {
  test('names the worker that owns the partitions, with its backlog, and the streams and the store', async () => {
    interface Status {
      readiness: { status: string };
      workers: { worker_id: string; partitions: number[]; backlog: object | null }[];
      partitions: { partition: number; state: string; owner: string }[];
      streams: { name: string; max_bytes: number }[];
      store: { free_bytes: number; total_bytes: number };
    }
    const status = dataOf(await operator('GET', '/admin/status')) as Status;
    expect(status.readiness.status).toBe('ready');
    const [one] = status.workers;
    expect(status.partitions.map(({ state, owner }) => [state, owner])).toEqual(
      status.partitions.map(() => ['up', one?.worker_id]),
    );
    expect(one?.partitions).toEqual(status.partitions.map(({ partition }) => partition));
    expect(status.streams.map(({ name }) => name)).toEqual(expect.arrayContaining(['DEAD_LETTERS', 'INGEST']));
    expect(status.streams.some(({ name }) => name.startsWith('KV_'))).toBe(false);
    expect(status.store.free_bytes).toBeGreaterThan(0);
  });

  test('a job shows its schedule, and its last run once it ran', async () => {
    interface Job {
      name: string;
      schedule: string;
      last_outcome: string | null;
    }
    await operator('POST', '/admin/jobs/forecast/run', {});
    const jobs = dataOf(await operator('GET', '/admin/jobs')) as Job[];
    expect(jobs.map(({ name }) => name)).toEqual(expect.arrayContaining(['agent-drift', 'retention', 'monitors']));
    expect(jobs.find(({ name }) => name === 'forecast')).toMatchObject({
      schedule: '40 0 * * *',
      last_outcome: 'done',
      failures: 0,
    });
  });
});

describe('dead letters', () => {
  test('a replayed event lands with its own id, and its letter is gone', async () => {
    await deadEvent(api.log, { org_id: ORG, trace_id: 'trace-replayed' });
    const letter = await letterOf('trace-replayed');
    expect(letter).toMatchObject({ org_id: ORG, stage: 'decode', replayable: true });
    const whole = dataOf(await operator('GET', `/admin/dead-letters/${letter.seq}`)) as Letter;
    expect(JSON.parse(whole.body ?? '')).toMatchObject({ trace_id: 'trace-replayed' });
    expect((await operator('POST', `/admin/dead-letters/${letter.seq}/replay`)).status).toBe(200);
    await eventually(async () => (await call(api, 'GET', '/v1/traces/trace-replayed')).status === 200, {
      what: 'the replayed trace',
    });
    expect((await operator('GET', `/admin/dead-letters/${letter.seq}`)).json?.['code']).toBe('not_found');
    expect((await operator('POST', `/admin/dead-letters/${letter.seq}/replay`)).json?.['code']).toBe('not_found');
  });

  test('the letter of a mail cannot be replayed, and can be deleted', async () => {
    await deadMail(api.log);
    const letter = (await letters('?stage=mail')).at(-1);
    expect(letter).toMatchObject({ stage: 'mail', org_id: null, replayable: false });
    const path = `/admin/dead-letters/${letter?.seq ?? 0}`;
    expect((await operator('POST', `${path}/replay`)).json?.['code']).toBe('conflict');
    expect((await operator('DELETE', path)).status).toBe(200);
    expect((await operator('DELETE', path)).json?.['code']).toBe('not_found');
  });

  test('pages go on where the one before ended, and show one organization where asked', async () => {
    for (const n of [1, 2, 3]) await deadEvent(api.log, { org_id: 'org_paged', trace_id: `paged-${n}` });
    await deadEvent(api.log, { org_id: ORG, trace_id: 'not-paged' });
    const seen: (string | null)[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const at: string = cursor === '' ? '' : `&cursor=${cursor}`;
      const answer = await operator('GET', `/admin/dead-letters?org_id=org_paged&limit=2${at}`);
      seen.push(...(dataOf(answer) as Letter[]).map(({ trace_id }) => trace_id));
      cursor = (answer.json?.['meta'] as { next_cursor: string | null }).next_cursor;
    }
    expect(seen).toEqual(['paged-1', 'paged-2', 'paged-3']);
  });

  test('a replay is in the audit log of the organization of the event', async () => {
    await deadEvent(api.log, { org_id: ORG, trace_id: 'trace-audited' });
    const { seq } = await letterOf('trace-audited');
    await operator('POST', `/admin/dead-letters/${seq}/replay`);
    await eventually(
      async () => {
        const answer = await call(api, 'GET', `/orgs/${ORG}/audit-log?action=dead_letter.replay`);
        return (dataOf(answer) as { target: { id: string } }[]).some(({ target }) => target.id === String(seq));
      },
      { what: 'the audit record' },
    );
  });
});
