// The audit log while parts of the service are down: every mutation either has exactly one record,
// or is rejected and changes nothing.
import { expect, test } from 'vitest';
import { AuditLog } from '../../../ops/exchange/audit_log.ts';
import { trackConnected } from '../../../ops/platform/nats/connect.ts';
import { AUDIT_STREAM, AUDIT_SUBJECT } from '../../../schemas/streams.ts';
import { publishRecord } from '../../../ops/platform/nats/publish_record.ts';
import { type AuditEntry, auditEntryCodec } from '../../../schemas/codec.ts';
import { runStatement } from '../../support/clickhouse.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, ORG } from './an_api.ts';
import {
  nats,
  engine,
  api,
  later,
  log,
  lander,
  connect,
  startLander,
  landed,
  redeliver,
  read,
  shown,
  makeKey,
  byRequest,
  eventIds,
  replaceLander,
} from './an_audit_log.ts';

test('while ClickHouse is away mutations work, and each is listed once when it is back', async () => {
  await engine.stop();
  const made = [];
  for (let n = 0; n < 20; n++) made.push(await makeKey(`away-${n}`));
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

test('when a lander dies between its insert and the acknowledgement, each mutation is listed once and each event has one id', async () => {
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
  replaceLander();
  await landed();
  await dying.stop();
  expect(await byRequest(made)).toMatchObject([{ outcome: 'done', target: { id: made.json?.['id'] } }]);
  expect((await read()).json?.['meta']).toMatchObject({ total: 1 });
  expect(await eventIds('audit.api_key.create', String(made.json?.['id']))).toHaveLength(1);
});

test('rows that arrive twice, or an outcome before its intent, are one mutation', async () => {
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
      msgID: `twice-${n}`,
      timeoutMs: 2000,
    });
    // Each record lands in a batch of its own.
    replaceLander();
    await landed();
    await lander.stop();
  }
  replaceLander();
  expect(shown(await read())).toMatchObject([{ outcome: 'done', changes: { role: { from: 'viewer', to: 'admin' } } }]);
  expect((await read()).json?.['meta']).toMatchObject({ total: 1 });
});

test('a mutation whose process dies is listed as unknown once it can no longer be under way', async () => {
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

test('while NATS is away a mutation is 502 and changes nothing', async () => {
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

const HANGS_MAX = 20;

/** Asks for a mutation while NATS hangs, and returns its answer once NATS works again and all that it stored has landed. */
async function hangs(): Promise<Answer> {
  nats.server.child.kill('SIGSTOP');
  const refused = await makeKey('never');
  nats.server.child.kill('SIGCONT');
  expect([refused.status, refused.json?.['code']]).toEqual([502, 'upstream_unavailable']);
  await eventually(async () => (await makeKey('after')).status === 201, { what: 'a mutation after the hang' });
  await redeliver();
  await landed();
  return refused;
}

/** Returns the outcome of a request in the audit log, with a newline; empty if it has no record. */
const outcomeOf = (answer: Answer): Promise<string> =>
  runStatement(
    engine.url,
    `SELECT outcome FROM audit_log FINAL WHERE request_id = '${String(answer.headers.get('x-request-id'))}'`,
  );

test('while NATS hangs a mutation is 502 in bounded time, and an intent that NATS stored is closed when it wakes up', async () => {
  // The client may lose its connection before the intent is written to it: then NATS never stores one, and the
  // hang is repeated.
  let refused = await hangs();
  for (let tries = 1; tries < HANGS_MAX && (await outcomeOf(refused)) === ''; tries += 1) refused = await hangs();
  await eventually(async () => (await outcomeOf(refused)) === 'failed\n', { what: 'the end of the intent' });
  expect(await byRequest(refused)).toEqual([]);
});

test('a mutation whose outcome NATS cannot store is answered as done, and its outcome is stored when NATS is back', async () => {
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
