// The audit log from a mutation by HTTP to its record: complete, once, and right about what is not known, whatever goes away
// in the middle.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AuditLog, recordSystemMutation } from '../../../ops/exchange/audit_log.ts';
import { createLogger } from '../../../ops/platform/logger.ts';
import { connectNats, trackConnected } from '../../../ops/platform/nats/connect.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { AUDIT_STREAM, AUDIT_SUBJECT, EVENTS_STREAM } from '../../../schemas/streams.ts';
import { publishRecord } from '../../../ops/platform/nats/publish_record.ts';
import { createAuditLander } from '../../../pipeline/delivery/audit_lander.ts';
import type { BatchConsumer } from '../../../pipeline/queues/batch_consumer.ts';
import {
  type AuditEntry,
  auditEntryCodec,
  FINGERPRINT_HEADER,
  serviceEventsCodec,
  type ServiceEvent,
} from '../../../schemas/codec.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { runStatement, startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, KEY, ORG, startTestApi, type TestApi, tokenOf } from './an_api.ts';

const MINUTE_MS = 60_000;
const operator = { 'X-Org-Api-Key': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` };

let nats: TestNats;
let engine: TestEngine;
let clickhouse: ClickHouse;
let api: TestApi;
/** The same service three minutes later: longer than any request takes. */
let later: TestApi;
let log: Log;
let lander: BatchConsumer<AuditEntry>;

interface Shown {
  audit_id: string;
  actor: { type: string; id: string };
  action: string;
  target: { type: string; id: string };
  changes: Record<string, unknown>;
  request_id: string | null;
  outcome: string;
}

const connect = async (): Promise<Log> =>
  openLog(await connectNats({ url: nats.url, name: 'audit-test', waitMs: 5000 }), {
    replicas: 1,
    logBytesMax: 64 * 1024 * 1024,
  });

const startLander = (on: Log, onLanded: (rows: number) => void = () => undefined): BatchConsumer<AuditEntry> => {
  const queue = createAuditLander({
    log: on,
    logger: createLogger('audit-test', 'silent'),
    clickhouse,
    now: Date.now,
    observe: () => undefined,
    onLanded,
    onTold: () => undefined,
  });
  queue.start();
  return queue;
};

beforeAll(async () => {
  [nats, engine] = await Promise.all([startTestNats(), startTestEngine()]);
  clickhouse = createClickHouse({ url: engine.url });
  await migrate(clickhouse, {});
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url });
  later = await startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url, now: () => Date.now() + 3 * MINUTE_MS });
  log = await connect();
  lander = startLander(log);
});
afterAll(async () => {
  await lander.stop();
  await Promise.all([api.close(), later.close()]);
  await log.nc.close();
  await clickhouse.close();
  await Promise.all([nats.remove(), engine.remove()]);
});

/** Everything that was written down has landed. */
const landed = () =>
  eventually(async () => (await log.jsm.streams.info(AUDIT_STREAM)).state.messages === 0, {
    what: 'an empty audit queue',
  });
/** What was in hand when its acknowledgement got lost comes again after a wait; with a new consumer it comes at once. */
const redeliver = () => log.jsm.consumers.delete(AUDIT_STREAM, 'audit');
const read = (query = '', on = api, headers: Record<string, string | undefined> = {}): Promise<Answer> =>
  call(on, 'GET', `/orgs/${ORG}/audit-log${query}`, { headers });
const shown = ({ json }: Answer): Shown[] => json?.['data'] as Shown[];
const makeKey = (name: string, headers: Record<string, string | undefined> = {}): Promise<Answer> =>
  call(api, 'POST', `/orgs/${ORG}/api-keys`, { body: { name, scopes: ['traces:read'] }, headers });
const byRequest = async (answer: Answer, on = later): Promise<Shown[]> =>
  shown(await read('?limit=200', on)).filter(({ request_id }) => request_id === answer.headers.get('x-request-id'));

/** Every test has an org of its own, as far as its log goes. */
beforeEach(async () => {
  await landed();
  await runStatement(engine.url, 'TRUNCATE TABLE audit_log');
});

describe('a mutation by HTTP', () => {
  test('shows soon, with who did what to what, from where and by which request', async () => {
    const made = await makeKey('ci');
    await eventually(async () => shown(await read()).length === 1);
    const { id, key_prefix, raw_key } = made.json as { id: string; key_prefix: string; raw_key: string };
    const list = await read();
    const keys = (await call(api, 'GET', `/orgs/${ORG}/api-keys?limit=200`)).json?.['data'] as {
      id: string;
      key_prefix: string;
    }[];
    expect(list.json?.['data']).toEqual([
      {
        audit_id: expect.stringMatching(/^aud_[0-9a-f]{32}$/) as string,
        org_id: ORG,
        actor: { type: 'api_key', id: keys.find((key) => key.key_prefix === KEY.slice(0, 12))?.id },
        action: 'api_key.create',
        target: { type: 'api_key', id },
        changes: { name: 'ci', scopes: ['traces:read'], key_prefix },
        request_id: made.headers.get('x-request-id'),
        ip: '127.0.0.1',
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
        outcome: 'done',
      },
    ]);
    expect(list.json?.['meta']).toMatchObject({ total: 1, page: 1, per_page: 50, has_more: false, next_cursor: null });
    expect(
      await runStatement(engine.url, `SELECT count() FROM audit_log WHERE position(changes, '${raw_key}') > 0`),
    ).toBe('0\n');
    expect(
      await runStatement(engine.url, "SELECT DISTINCT dateDiff('day', created_at, delete_on) FROM audit_log"),
    ).toBe('2555\n');
  });

  test('shows in the log of the org that it made, and of no other', async () => {
    const owner = { user_id: 'user_owner', email: 'owner@example.com' };
    const made = await call(api, 'POST', '/admin/orgs', {
      body: { org_id: 'org_other', name: 'Other', plan_name: 'enterprise', owner },
      headers: operator,
    });
    expect(made.status).toBe(201);
    const key = await call(api, 'POST', '/admin/orgs/org_other/api-keys', {
      body: { name: 'first', scopes: ['*'] },
      headers: operator,
    });
    const mine = { 'X-Org-Api-Key': String(key.json?.['raw_key']), 'X-Org-Id': 'org_other' };
    const readOther = () => call(api, 'GET', '/orgs/org_other/audit-log', { headers: mine });
    await eventually(async () => shown(await readOther()).length === 2);
    expect(shown(await readOther()).map(({ actor, action, target }) => [actor, action, target])).toEqual([
      [{ type: 'operator', id: 'operator' }, 'api_key.create', { type: 'api_key', id: key.json?.['id'] }],
      [{ type: 'operator', id: 'operator' }, 'org.create', { type: 'org', id: 'org_other' }],
    ]);
    await landed();
    expect(shown(await read('', later))).toEqual([]);
    const crossed = await read('', api, mine);
    expect([crossed.status, crossed.json?.['code']]).toEqual([403, 'cross_org_access']);
    // Nothing is left over under no org.
    expect(
      await runStatement(engine.url, "SELECT count() FROM audit_log FINAL WHERE org_id = '' AND outcome = 'unknown'"),
    ).toBe('0\n');
    const byOwner = await call(api, 'GET', '/orgs/org_other/audit-log?limit=1', {
      headers: asUser(await tokenOf({ sub: owner.user_id, email: owner.email }), 'org_other'),
    });
    expect(byOwner.json?.['meta']).toMatchObject({ total: 2 });
  });

  test('that is too large for the log shows its small values, and a new agent is told all the same', async () => {
    const token = await call(api, 'POST', `/orgs/${ORG}/agents/register-tokens`);
    const made = await call(api, 'POST', `/orgs/${ORG}/agents/register`, {
      body: {
        agent_id: 'large',
        name: 'Large',
        framework: 'chain',
        version: '1.4.0',
        register_token: (token.json?.['data'] as Record<string, unknown>)['register_token'],
        tags: Array.from({ length: 50 }, () => 't'.repeat(128)),
        metadata: { text: 'm'.repeat(16_000) },
      },
    });
    expect(made.status).toBe(201);
    await landed();
    const [record] = await byRequest(made);
    expect(record?.changes).toEqual({
      truncated: true,
      fields: ['is_new', 'name', 'framework', 'version', 'repo_url', 'tags', 'metadata'],
      is_new: true,
      name: 'Large',
      framework: 'chain',
      version: '1.4.0',
      repo_url: null,
    });
    const [event] = (await events()).filter(({ payload }) => payload.includes('"large"'));
    expect(JSON.parse(event?.payload ?? '')).toEqual({
      event: 'agent.registered',
      agent_id: 'large',
      framework: 'chain',
      version: '1.4.0',
    });
  });

  test('that fails leaves nothing to be seen, now or later', async () => {
    const gone = await call(api, 'DELETE', `/orgs/${ORG}/api-keys/ak_none`);
    expect(gone.json?.['code']).toBe('api_key_not_found');
    await landed();
    expect(await runStatement(engine.url, 'SELECT outcome FROM audit_log FINAL')).toBe('failed\n');
    for (const on of [api, later]) expect(await byRequest(gone, on)).toEqual([]);
    expect((await read('', later)).json?.['meta']).toMatchObject({ total: 0 });
  });

  test('that is repeated under one Idempotency-Key shows once', async () => {
    const headers = { 'Idempotency-Key': crypto.randomUUID() };
    const answers = [await makeKey('once', headers), await makeKey('once', headers)];
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    await landed();
    expect(shown(await read()).map(({ target }) => target.id)).toEqual([answers[0]?.json?.['id']]);
  });
});

describe('what goes away in the middle', () => {
  test('ClickHouse away: mutations work, and all of them show once when it is back', async () => {
    await engine.stop();
    const made = [];
    for (let n = 0; n < 20; n++) made.push(await makeKey(`away-${String(n)}`));
    expect(new Set(made.map(({ status }) => status))).toEqual(new Set([201]));
    expect((await read()).json?.['code']).toBe('upstream_unavailable');
    await engine.start();
    await eventually(async () => shown(await read('?limit=200')).length === 20, { what: 'every mutation' });
    await landed();
    expect(
      shown(await read('?limit=200'))
        .map(({ target }) => target.id)
        .sort(),
    ).toEqual(made.map(({ json }) => String(json?.['id'])).sort());
  });

  test('a lander that dies between the insert and its acknowledgement: every mutation shows once, every event has one id', async () => {
    await lander.stop();
    const doomed = await connect();
    let rows = 0;
    const dying = startLander(doomed, (count) => {
      rows += count;
      void doomed.nc.close();
    });
    const made = await makeKey('twice');
    await eventually(() => rows > 0);
    expect((await log.jsm.streams.info(AUDIT_STREAM)).state.messages).toBeGreaterThan(0);
    await redeliver();
    lander = startLander(log);
    await landed();
    await dying.stop();
    expect(await byRequest(made)).toMatchObject([{ outcome: 'done', target: { id: made.json?.['id'] } }]);
    expect((await read()).json?.['meta']).toMatchObject({ total: 1 });
    expect(await eventIds('audit.api_key.create', String(made.json?.['id']))).toHaveLength(1);
  });

  test('rows that come twice, or the outcome before the intent, are one mutation', async () => {
    await lander.stop();
    const entry: AuditEntry = {
      audit_id: `aud_${'a'.repeat(32)}`,
      phase: 'done',
      org_id: ORG,
      actor_type: 'user',
      actor_id: 'user_1',
      action: 'member.role_change',
      target_type: 'member',
      target_id: 'user_2',
      changes: '{"role":{"from":"viewer","to":"admin"}}',
      request_id: 'req_1',
      ip: '::1',
      created_at: Date.now(),
    };
    for (const [n, phase] of (['done', 'intent', 'done', 'intent'] as const).entries()) {
      const record = { ...entry, phase, changes: phase === 'intent' ? '{}' : entry.changes };
      await publishRecord(log, AUDIT_SUBJECT, auditEntryCodec, record, {
        msgID: `twice-${String(n)}`,
        timeoutMs: 2000,
      });
      // Each lands by itself.
      lander = startLander(log);
      await landed();
      await lander.stop();
    }
    lander = startLander(log);
    expect(shown(await read())).toMatchObject([
      { outcome: 'done', changes: { role: { from: 'viewer', to: 'admin' } } },
    ]);
    expect((await read()).json?.['meta']).toMatchObject({ total: 1 });
  });

  test('a process that dies in the middle of a mutation leaves it as unknown, but not while it may be under way', async () => {
    const doomed = await connect();
    const audit = new AuditLog(doomed, { now: Date.now, connected: () => true, onProblem: () => undefined });
    await audit.intend({
      org_id: ORG,
      actor: { type: 'user', id: 'user_1' },
      action: 'member.remove',
      target: { type: 'member', id: 'user_2' },
      request_id: 'req_cut_off',
      ip: '10.0.0.1',
    });
    await doomed.nc.close();
    await landed();
    expect((await read()).json).toMatchObject({ data: [], meta: { total: 0 } });
    expect(shown(await read('', later))).toMatchObject([
      {
        action: 'member.remove',
        target: { type: 'member', id: 'user_2' },
        changes: {},
        request_id: 'req_cut_off',
        outcome: 'unknown',
      },
    ]);
    expect((await read('', later)).json?.['meta']).toMatchObject({ total: 1 });
  });

  test('NATS away: 502, and nothing has changed', async () => {
    const before = await call(api, 'GET', `/orgs/${ORG}/api-keys?limit=200`);
    await nats.stop();
    const refused = await makeKey('never');
    expect([refused.status, refused.json?.['code']]).toEqual([502, 'upstream_unavailable']);
    await nats.start();
    await eventually(async () => (await makeKey('after')).status === 201, { what: 'a mutation after the restart' });
    const after = await call(api, 'GET', `/orgs/${ORG}/api-keys?limit=200`);
    const names = ({ json }: Answer) => (json?.['data'] as { name: string }[]).map(({ name }) => name);
    expect(names(after)).toEqual(['after', ...names(before)]);
    await redeliver();
    await landed();
    expect(await byRequest(refused)).toEqual([]);
  });

  test('NATS that hangs: 502 in bounded time, and what it stored of the intent is closed when it wakes up', async () => {
    nats.server.child.kill('SIGSTOP');
    const refused = await makeKey('never');
    nats.server.child.kill('SIGCONT');
    expect([refused.status, refused.json?.['code']]).toEqual([502, 'upstream_unavailable']);
    const outcome = () =>
      runStatement(
        engine.url,
        `SELECT outcome FROM audit_log FINAL WHERE request_id = '${String(refused.headers.get('x-request-id'))}'`,
      );
    await eventually(async () => (await outcome()) === 'failed\n', { what: 'the end of the intent' });
    expect(await byRequest(refused)).toEqual([]);
  });

  test('NATS away when the outcome is known: the mutation is answered as done, and its outcome stored when NATS is back', async () => {
    const own = await connect();
    const tracked = trackConnected(own.nc);
    const problems: string[] = [];
    const audit = new AuditLog(own, {
      now: Date.now,
      connected: () => tracked.connected,
      onProblem: (problem) => problems.push(problem),
    });
    const target = { type: 'policy', id: ORG } as const;
    const intended = await audit.intend({
      org_id: ORG,
      actor: { type: 'user', id: 'user_1' },
      action: 'policy.update',
      target,
      request_id: 'req_kept',
      ip: '',
    });
    await nats.kill();
    await intended.done({ org_id: ORG, target, changes: { period: { from: 'month', to: 'fiscal_year' } } });
    await nats.start();
    await audit.flush();
    await redeliver();
    await landed();
    await eventually(async () => shown(await read()).length === 1, { what: 'the outcome' });
    expect(shown(await read())).toMatchObject([{ outcome: 'done', changes: { period: { to: 'fiscal_year' } } }]);
    expect(problems).toEqual([]);
    await own.nc.close();
  });
});

describe('the list', () => {
  const put = async (n: number, over: Partial<AuditEntry> = {}): Promise<void> => {
    const entry: AuditEntry = {
      audit_id: `aud_${n.toString(16).padStart(32, '0')}`,
      phase: 'done',
      org_id: ORG,
      actor_type: 'user',
      actor_id: `user_${String(n % 2)}`,
      action: n % 3 === 0 ? 'org.update' : 'api_key.create',
      target_type: 'org',
      target_id: String(n),
      changes: '{}',
      request_id: '',
      ip: '',
      // Three of a millisecond each.
      created_at: Date.parse('2026-01-01T00:00:00Z') + Math.floor(n / 3),
      ...over,
    };
    await publishRecord(log, AUDIT_SUBJECT, auditEntryCodec, entry, {
      msgID: `list-${String(Math.random())}`,
      timeoutMs: 2000,
    });
  };
  const targets = (answer: Answer): number[] => shown(answer).map(({ target }) => Number(target.id));

  test('is paged by cursor from the newest on, each record once, while new ones arrive', async () => {
    for (let n = 0; n < 20; n++) await put(n);
    await landed();
    const found: number[] = [];
    const metas: unknown[] = [];
    let cursor: string | null = '';
    for (let page = 0; cursor !== null; page++) {
      const answer = await read(`?limit=8${cursor === '' ? '' : `&cursor=${cursor}`}`);
      found.push(...targets(answer));
      const { total, page: number, per_page, has_more, next_cursor } = answer.json?.['meta'] as Record<string, unknown>;
      metas.push([total, number, per_page, has_more, next_cursor === null]);
      cursor = next_cursor as string | null;
      await put(100 + page, { created_at: Date.parse('2026-02-01T00:00:00Z') });
      await landed();
    }
    expect(found).toEqual(Array.from({ length: 20 }, (_, n) => 19 - n));
    expect(metas).toEqual([
      [20, 1, 8, true, false],
      [21, 2, 8, undefined, false],
      [22, 3, 8, undefined, true],
    ]);
  });

  test('is narrowed by action, actor and time', async () => {
    for (let n = 0; n < 12; n++) await put(n);
    await landed();
    expect(targets(await read('?action=org.update'))).toEqual([9, 6, 3, 0]);
    expect(targets(await read('?actor_id=user_1&action=org.update'))).toEqual([9, 3]);
    expect(targets(await read('?since=2026-01-01T00:00:00.002Z'))).toEqual([11, 10, 9, 8, 7, 6]);
    expect(targets(await read('?since=2026-01-01&until=2026-01-01T00:00:00.001Z'))).toEqual([5, 4, 3, 2, 1, 0]);
    expect((await read('?action=nothing.such')).json).toMatchObject({
      data: [],
      meta: { total: 0, next_cursor: null },
    });
    expect((await read('?actor_id=user_1&limit=2')).json?.['meta']).toMatchObject({ total: 6, has_more: true });
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=201', 'limit'],
    ['cursor=rubbish', 'cursor'],
    ['cursor=WzEsMiwzXQ', 'cursor'],
    ['since=yesterday', 'since'],
    ['until=2026-13-01', 'until'],
    ['action=', 'action'],
  ])('refuses %s and names the field', async (query, field) => {
    const answer = await read(`?${query}`);
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(answer.json?.['detail']).toMatch(new RegExp(`^${field}: `));
  });

  test('is no analyst’s to read', async () => {
    await expect(runStatement(engine.analystUrl, 'SELECT count() FROM audit_log')).rejects.toThrow(
      /Not enough privileges/,
    );
  });
});

describe('a mutation of the service’s own', () => {
  test('is recorded when it happened, not when nothing changed, and as unknown when it broke off', async () => {
    const audit = new AuditLog(log, { now: Date.now, connected: () => true, onProblem: () => undefined });
    const mutation = (id: string) => ({
      org_id: ORG,
      action: 'agent.deprecate',
      target: { type: 'agent' as const, id },
      by: 'agent-drift',
    });
    await recordSystemMutation(audit, mutation('a1'), () =>
      Promise.resolve({ drift_type: 'inactive', reason: 'no events in 90 days' }),
    );
    await recordSystemMutation(audit, mutation('a2'), () => Promise.resolve(null));
    await expect(
      recordSystemMutation(audit, mutation('a3'), () => Promise.reject(new Error('cut off'))),
    ).rejects.toThrow('cut off');
    await landed();
    expect(
      shown(await read('', later)).map(({ actor, target, request_id, outcome }) => [
        actor,
        target.id,
        request_id,
        outcome,
      ]),
    ).toEqual([
      [{ type: 'system', id: 'agent-drift' }, 'a3', null, 'unknown'],
      [{ type: 'system', id: 'agent-drift' }, 'a1', null, 'done'],
    ]);
    const [event] = (await events()).filter(({ payload }) => payload.includes('"a1"'));
    expect(JSON.parse(event?.payload ?? '')).toEqual({
      event: 'agent.deprecated',
      agent_id: 'a1',
      drift_type: 'inactive',
      reason: 'no events in 90 days',
    });
  });
});

async function events(): Promise<ServiceEvent[]> {
  const found: ServiceEvent[] = [];
  const { state } = await log.jsm.streams.info(EVENTS_STREAM);
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await log.jsm.streams.getMessage(EVENTS_STREAM, { seq });
    if (message !== null)
      found.push(...serviceEventsCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)).events);
  }
  return found;
}

/** Different ids of the events of a kind that are about a thing. */
async function eventIds(event: string, about: string): Promise<string[]> {
  return [
    ...new Set(
      (await events())
        .filter((told) => told.event === event && told.payload.includes(about))
        .map(({ event_id }) => event_id),
    ),
  ];
}
