// The audit log, from a mutation to its stored record and to the list of records.
import { expect, test } from 'vitest';
import { AuditLog, recordSystemMutation } from '../../../ops/exchange/audit_log.ts';
import { AUDIT_SUBJECT } from '../../../schemas/streams.ts';
import { publishRecord } from '../../../ops/platform/nats/publish_record.ts';
import { type AuditEntry, auditEntryCodec } from '../../../schemas/codec.ts';
import { runStatement } from '../../support/clickhouse.ts';
import { eventually } from '../../support/wait.ts';
import { makeOrg } from '../a_tenant.ts';
import { type Answer, asUser, call, KEY, ORG, tokenOf } from './an_api.ts';
import { operator, engine, api, later, log, landed, read, shown, makeKey, byRequest, events } from './an_audit_log.ts';

test('a mutation is listed with its actor, action, target, address and request', async () => {
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
  expect(await runStatement(engine.url, "SELECT DISTINCT dateDiff('day', created_at, delete_on) FROM audit_log")).toBe(
    '2555\n',
  );
});

test('the making of an organization is listed in its own audit log and in no other', async () => {
  const owner = { user_id: 'user_owner', email: 'owner@example.com' };
  await makeOrg(api, { org_id: 'org_other', owner });
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
  // No record without an organization remains.
  expect(
    await runStatement(engine.url, "SELECT count() FROM audit_log FINAL WHERE org_id = '' AND outcome = 'unknown'"),
  ).toBe('0\n');
  const byOwner = await call(api, 'GET', '/orgs/org_other/audit-log?limit=1', {
    headers: asUser(await tokenOf({ sub: owner.user_id, email: owner.email }), 'org_other'),
  });
  expect(byOwner.json?.['meta']).toMatchObject({ total: 2 });
});

test('a mutation too large for the audit log is listed with its small values, and its platform event is published', async () => {
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

test('a failed mutation is never listed', async () => {
  const gone = await call(api, 'DELETE', `/orgs/${ORG}/api-keys/ak_none`);
  expect(gone.json?.['code']).toBe('api_key_not_found');
  await landed();
  expect(await runStatement(engine.url, 'SELECT outcome FROM audit_log FINAL')).toBe('failed\n');
  for (const on of [api, later]) expect(await byRequest(gone, on)).toEqual([]);
  expect((await read('', later)).json?.['meta']).toMatchObject({ total: 0 });
});

test('a mutation that is repeated under one Idempotency-Key is listed once', async () => {
  const headers = { 'Idempotency-Key': crypto.randomUUID() };
  const answers = [await makeKey('once', headers), await makeKey('once', headers)];
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
  await landed();
  expect(shown(await read()).map(({ target }) => target.id)).toEqual([answers[0]?.json?.['id']]);
});

const put = async (n: number, over: Partial<AuditEntry> = {}): Promise<void> => {
  const entry: AuditEntry = {
    audit_id: `aud_${n.toString(16).padStart(32, '0')}`,
    phase: 'done',
    org_id: ORG,
    actor_type: 'user',
    actor_id: `user_${n % 2}`,
    action: n % 3 === 0 ? 'org.update' : 'api_key.create',
    target_type: 'org',
    target_id: String(n),
    changes: '{}',
    request_id: '',
    ip: '',
    // Groups of three records share a millisecond.
    created_at: Date.parse('2026-01-01T00:00:00Z') + Math.floor(n / 3),
    ...over,
  };
  await publishRecord(log, AUDIT_SUBJECT, auditEntryCodec, entry, {
    msgID: `list-${Math.random()}`,
    timeoutMs: 2000,
  });
};
const targets = (answer: Answer): number[] => shown(answer).map(({ target }) => Number(target.id));

test('the audit log pages by cursor from the newest record, each record once, while new ones arrive', async () => {
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

test('the audit log filters by action, actor and time', async () => {
  for (let n = 0; n < 12; n++) await put(n);
  await landed();
  expect(targets(await read('?action=org.update'))).toEqual([9, 6, 3, 0]);
  expect(targets(await read('?actor_id=user_1&action=org.update'))).toEqual([9, 3]);
  expect(targets(await read('?target_id=9'))).toEqual([9]);
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
])('the audit log refuses %s and names the field', async (query, field) => {
  const answer = await read(`?${query}`);
  expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
  expect(answer.json?.['detail']).toMatch(new RegExp(`^${field}: `));
});

test('an analyst cannot read the audit log', async () => {
  await expect(runStatement(engine.analystUrl, 'SELECT count() FROM audit_log')).rejects.toThrow(
    /Not enough privileges/,
  );
});

test('a mutation of the service itself is recorded when it changes something, and as unknown when it is interrupted', async () => {
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
  await expect(recordSystemMutation(audit, mutation('a3'), () => Promise.reject(new Error('cut off')))).rejects.toThrow(
    'cut off',
  );
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
