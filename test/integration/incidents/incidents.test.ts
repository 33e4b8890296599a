// Incidents end to end: real API, real workers, the real engine. Failing traces of one kind open one incident, whatever numbers
// and ids stand in their errors; it grows, is told once, and is resolved by time or by hand.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { EVENTS_STREAM } from '../../../schemas/streams.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, type Answer, call, startTestApi, type TestApi } from '../api/an_api.ts';

const MINUTE_MS = 60_000;

let database: TestDatabase;
let nats: TestNats;
let api: TestApi;
let worker: TestWorker;
/** An org of each test. */
let org = '';
let key = '';
let orgs = 0;
let sent = 0;

const start = (): TestWorker =>
  startWorker({ natsUrl: nats.url, clickhouseUrl: database.url, more: { SERVICE_TRACE_GRACE_MS: '50' } });

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  worker = start();
  await worker.ready;
});

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await api.close();
  await nats.remove();
  await database.drop();
});

const admin = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` };
const asOrg = () => ({ 'X-Org-Api-Key': key, 'X-Org-Id': org });

async function makeKey(scopes: string[]): Promise<string> {
  const made = await call(api, 'POST', `/admin/orgs/${org}/api-keys`, {
    headers: admin,
    body: { name: 'key', scopes },
  });
  return String(made.json?.['raw_key']);
}

beforeEach(async () => {
  orgs++;
  org = `org_incident_${String(orgs)}`;
  const body = {
    org_id: org,
    name: org,
    plan_name: 'enterprise',
    owner: { user_id: `u_${org}`, email: `${org}@example.com` },
  };
  expect((await call(api, 'POST', '/admin/orgs', { headers: admin, body })).status).toBe(201);
  key = await makeKey(['*']);
});

interface Sent {
  error?: unknown;
  agent?: string;
  /** Minutes before now at which it ended. */
  ago?: number;
  outcome?: string;
}

/** Traces of one span each; resolves with their ids. */
async function send(traces: readonly Sent[]): Promise<string[]> {
  const events = traces.map(({ error, agent = 'booker', ago, outcome = 'error' }) => {
    sent++;
    const ended = ago === undefined ? {} : { ended_at: new Date(Date.now() - ago * MINUTE_MS).toISOString() };
    return {
      name: 'book',
      outcome,
      duration_ms: 10,
      ...ended,
      attributes: { agent_id: agent, serial: sent, ...(error === undefined ? {} : { error_message: error }) },
    };
  });
  const answer = await call(api, 'POST', `/orgs/${org}/ingest/custom`, { headers: asOrg(), body: { events } });
  expect(answer.status).toBe(200);
  return (answer.json?.['data'] as { events: { trace_id: string }[] }).events.map(({ trace_id }) => trace_id);
}

/** Failing traces for one reason. */
const failures = (count: number, more: Partial<Sent> = {}): Sent[] =>
  Array.from({ length: count }, (_, i) => ({
    error: `no seat on flight HAT0${String(i)} for "passenger ${String(i)}", code ${String(1000 + i)}`,
    ...more,
  }));

interface Incident {
  incident_id: string;
  cluster_id: string;
  status: string;
  trace_count: number;
  [field: string]: unknown;
}
async function incidents(query = ''): Promise<Incident[]> {
  const answer = await call(api, 'GET', `/v1/incidents${query}`, { headers: asOrg() });
  expect(answer.status).toBe(200);
  return answer.json?.['data'] as Incident[];
}
async function theIncident(traces: number, status = 'open'): Promise<Incident> {
  await eventually(async () => (await incidents(`?status=${status}`))[0]?.trace_count === traces, {
    what: `an incident of ${String(traces)} traces`,
  });
  const [found, ...others] = await incidents(`?status=${status}`);
  expect(others).toEqual([]);
  if (found === undefined) throw new Error('there was one');
  return found;
}
const resolve = (incident_id: string, headers: Record<string, string | undefined> = asOrg()): Promise<Answer> =>
  call(api, 'POST', `/v1/incidents/${incident_id}/resolve`, { headers });
async function runJob(minutes: number): Promise<void> {
  const body = { now: new Date(Date.now() + minutes * MINUTE_MS).toISOString() };
  // The scheduled run may be under way.
  await eventually(
    async () => (await call(api, 'POST', '/admin/jobs/incidents/run', { headers: admin, body })).status === 200,
    {
      what: 'the job',
    },
  );
}
/** So many traces of this org are complete, and everything told of them has been counted. */
async function counted(traces: number): Promise<void> {
  const complete = async () => new Set((await eventsOf('trace.completed')).map(({ event_id }) => event_id)).size;
  await eventually(async () => (await complete()) === traces, { what: `${String(traces)} complete traces` });
  await eventually(
    async () => {
      const info = await api.log.jsm.consumers.info(EVENTS_STREAM, 'incidents');
      return info.num_pending + info.num_ack_pending === 0;
    },
    { what: 'everything counted' },
  );
}

/** What was told of this org. */
const eventsOf = async (event: string) => (await toldEvents(api.log, org)).filter((one) => one.event === event);
async function toldOf(event: string, events: number): Promise<Record<string, unknown>[]> {
  await eventually(async () => (await eventsOf(event)).length >= events, { what: `${String(events)} ${event}` });
  const found = await eventsOf(event);
  expect(new Set(found.map(({ event_id }) => event_id)).size).toBe(events);
  return found.map(({ payload }) => JSON.parse(payload) as Record<string, unknown>);
}

test('five failing traces of one kind are an incident; a sixth grows it; nobody else sees it', async () => {
  await send([...failures(4), ...failures(4, { agent: 'other' }), ...failures(5, { error: 'ok', outcome: 'success' })]);
  await counted(13);
  expect(await incidents()).toEqual([]);
  const traces = await send(failures(1));
  const incident = await theIncident(5);
  expect(incident).toEqual({
    incident_id: expect.stringMatching(/^inc_[0-9a-f]{16}$/) as string,
    cluster_id: expect.stringMatching(/^clu_[0-9a-f]{16}$/) as string,
    status: 'open',
    severity: 'warning',
    agent_id: 'booker',
    root_span_name: 'book',
    error: 'no seat on flight # for "…", code #',
    sample: expect.stringContaining('no seat on flight HAT0') as string,
    trace_count: 5,
    first_trace_at: expect.stringMatching(/Z$/) as string,
    last_trace_at: expect.stringMatching(/Z$/) as string,
    opened_at: expect.stringMatching(/Z$/) as string,
    resolved_at: null,
    resolved_by: null,
  });
  const [created] = await toldOf('incident.created', 1);
  const { incident_id, cluster_id } = incident;
  expect(created).toEqual({
    event: 'incident.created',
    org_id: org,
    incident_id,
    cluster_id,
    severity: 'warning',
    trace_count: 5,
    first_trace_at: incident['first_trace_at'],
  });
  await send(failures(1, { outcome: 'timeout' }));
  expect(await theIncident(6)).toMatchObject({ incident_id, severity: 'warning' });
  const one = await call(api, 'GET', `/v1/incidents/${incident_id}`, { headers: asOrg() });
  expect(one.json?.['data']).toMatchObject({ incident_id, trace_count: 6 });
  const ids = (one.json?.['data'] as { trace_ids: string[] }).trace_ids;
  expect(ids).toHaveLength(6);
  expect(ids).toContain(traces[0]);
  // The test's first org has the same API and none of it.
  for (const answer of [
    await call(api, 'GET', `/v1/incidents/${incident_id}`),
    await call(api, 'POST', `/v1/incidents/${incident_id}/resolve`),
  ])
    expect([answer.status, answer.json?.['code']]).toEqual([404, 'incident_not_found']);
  expect((await call(api, 'GET', '/v1/incidents')).json).toMatchObject({
    data: [],
    meta: { total: 0, page: 1, has_more: false, next_cursor: null },
  });
  await send(failures(44));
  expect(await theIncident(50)).toMatchObject({ incident_id, severity: 'critical' });
  expect(await toldOf('incident.created', 1)).toHaveLength(1);
});

test('half an hour without a failing trace resolves it; more open another one', async () => {
  await send(failures(5));
  const { incident_id, cluster_id } = await theIncident(5);
  await runJob(29);
  expect(await theIncident(5)).toMatchObject({ incident_id });
  await runJob(31);
  const resolved = await theIncident(5, 'resolved');
  expect(resolved).toMatchObject({
    incident_id,
    status: 'resolved',
    resolved_by: 'auto',
    resolved_at: expect.stringMatching(/Z$/) as string,
  });
  await eventually(async () => {
    const log = await call(api, 'GET', `/orgs/${org}/audit-log?action=incident.resolve`, { headers: asOrg() });
    const records = log.json?.['data'] as Record<string, unknown>[];
    expect(records).toEqual([
      expect.objectContaining({
        actor: { type: 'system', id: 'incidents' },
        target: { type: 'incident', id: incident_id },
        changes: { status: 'resolved', trace_count: 5 },
        outcome: 'done',
        request_id: null,
      }),
    ]);
    return true;
  });
  expect(await toldOf('incident.resolved', 1)).toEqual([
    {
      event: 'incident.resolved',
      org_id: org,
      incident_id,
      cluster_id,
      severity: 'warning',
      trace_count: 5,
      first_trace_at: resolved['first_trace_at'],
      resolved_at: resolved['resolved_at'],
      resolution: 'auto',
    },
  ]);
  await send(failures(4));
  await counted(9);
  expect(await incidents('?status=open')).toEqual([]);
  await send(failures(1));
  const next = await theIncident(5);
  expect(next.cluster_id).toBe(cluster_id);
  expect(next.incident_id).not.toBe(incident_id);
  expect((await incidents()).map((one) => one.incident_id)).toEqual([next.incident_id, incident_id]);
  await toldOf('incident.created', 2);
});

test('a member or a key that may resolves it by hand, once; what fails later is another one', async () => {
  await send(failures(5));
  const { incident_id } = await theIncident(5);
  const reader = await makeKey(['traces:read']);
  expect((await resolve(incident_id, { 'X-Org-Api-Key': reader, 'X-Org-Id': org })).json?.['code']).toBe('forbidden');
  const first = await resolve(incident_id);
  expect([first.status, first.json?.['data']]).toMatchObject([
    200,
    { incident_id, status: 'resolved', trace_count: 5, resolved_by: expect.stringMatching(/^ak_/) as string },
  ]);
  const again = await resolve(incident_id);
  expect([again.status, again.json?.['data']]).toEqual([200, first.json?.['data']]);
  expect(await incidents('?status=open')).toEqual([]);
  const [event] = await toldOf('incident.resolved', 1);
  expect(event).toMatchObject({ incident_id, resolution: 'manual', trace_count: 5 });
  await eventually(async () => {
    const log = await call(api, 'GET', `/orgs/${org}/audit-log?action=incident.resolve`, { headers: asOrg() });
    const records = log.json?.['data'] as { target: unknown }[];
    return (
      records.length === 1 &&
      JSON.stringify(records[0]?.target) === JSON.stringify({ type: 'incident', id: incident_id })
    );
  });
  await send(failures(5));
  expect((await theIncident(5)).incident_id).not.toBe(incident_id);
  expect((await resolve('inc_0000000000000000')).json?.['code']).toBe('incident_not_found');
});

test('what counts is when traces failed, not when they came', async () => {
  await send([0, 10, 20, 30, 40, 50].map((ago) => ({ error: 'slow drip', ago })));
  await send([100, 101, 102, 103, 104].map((ago) => ({ error: 'long ago', ago })));
  await send([20, 21, 22, 23, 24].map((ago) => ({ error: 'just now', ago })));
  await counted(16);
  await runJob(0);
  expect((await incidents()).map(({ error, status }) => [error, status]).toSorted()).toEqual([
    ['just now', 'open'],
    ['long ago', 'resolved'],
  ]);
  const hour = (ago: number) => new Date(Date.now() - ago * MINUTE_MS).toISOString();
  expect((await incidents(`?until=${hour(60)}`)).map(({ error }) => error)).toEqual(['long ago']);
  expect((await incidents(`?since=${hour(60)}`)).map(({ error }) => error)).toEqual(['just now']);
});

test('the error is what the contract says, in its order', async () => {
  const all = [
    { attributes: { error_message: 'named 1', error: 'plain 1' }, error: 'named #' },
    { attributes: { error: 'plain 1' }, error: 'plain #' },
    { attributes: { error: { message: 'inner 1', code: 5 } }, error: 'inner #' },
    { attributes: { error: { code: 5 } }, error: '{"code":#}' },
    { attributes: { error: true }, response: 'answered 1', error: 'answered #' },
    { attributes: {}, error: '' },
  ];
  for (const [index, { attributes, response }] of all.entries()) {
    const events = Array.from({ length: 5 }, (_, i) => ({
      name: `root ${String(index)}`,
      outcome: 'error',
      duration_ms: 1,
      ...(response === undefined ? {} : { response }),
      attributes: { ...attributes, serial: `${String(index)}-${String(i)}` },
    }));
    expect((await call(api, 'POST', `/orgs/${org}/ingest/custom`, { headers: asOrg(), body: { events } })).status).toBe(
      200,
    );
  }
  await eventually(async () => (await incidents()).length === all.length, { what: 'an incident of each' });
  expect((await incidents()).map(({ error }) => error).toSorted()).toEqual(all.map(({ error }) => error).toSorted());
});

test('pages, filters and bad input', async () => {
  for (const agent of ['a', 'b', 'c']) {
    await send(failures(5, { agent }));
    await eventually(async () => (await incidents(`?agent_id=${agent}`)).length === 1, {
      what: `an incident of ${agent}`,
    });
  }
  const walk = async (path: string) =>
    (await call(api, 'GET', path, { headers: asOrg() })).json as { data: Incident[]; meta: Record<string, unknown> };
  const all = await walk('/v1/incidents');
  expect(all.data.map((one) => one['agent_id'])).toEqual(['c', 'b', 'a']);
  const first = await walk('/v1/incidents?limit=2');
  expect(first.meta).toMatchObject({ total: 3, page: 1, per_page: 2, has_more: true });
  const rest = await walk(`/v1/incidents?limit=2&cursor=${String(first.meta['next_cursor'])}`);
  expect(rest.data).toEqual(all.data.slice(2));
  expect(rest.meta).toMatchObject({ total: 3, page: 2, next_cursor: null });
  expect((await walk('/v1/incidents?limit=2&offset=2')).data).toEqual(all.data.slice(2));
  expect((await walk('/v1/incidents?severity=warning')).data).toHaveLength(3);
  expect((await walk('/v1/incidents?severity=critical')).data).toEqual([]);
  for (const [query, field] of [
    ['status=gone', 'status'],
    ['severity=info', 'severity'],
    ['limit=0', 'limit'],
    ['since=yesterday', 'since'],
    ['cursor=nonsense', 'cursor'],
  ]) {
    const answer = await call(api, 'GET', `/v1/incidents?${String(query)}`, { headers: asOrg() });
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(answer.json?.['detail']).toContain(field);
  }
});

test('workers that count side by side and are killed at any moment count each trace once and open one incident', async () => {
  const traces = 20;
  let other = start();
  await other.ready;
  const rows = async (): Promise<number> =>
    Number(await database.run(`SELECT sum(spans * sign) FROM traces WHERE org_id = '${org}'`));
  const completed = async (): Promise<number> =>
    new Set((await eventsOf('trace.completed')).map(({ event_id }) => event_id)).size;
  /** Ever later in the way of what was sent: at once, landed, complete, counted, its incident told of. */
  const stages: ((sent: number) => Promise<unknown>)[] = [
    () => Promise.resolve(),
    (sent) => eventually(async () => (await rows()) >= sent, { what: 'the rows' }),
    (sent) => eventually(async () => (await completed()) >= sent, { what: 'the completions' }),
    counted,
    () => toldOf('incident.created', 1),
  ];
  for (const [sends, reached] of stages.entries()) {
    await send(failures(4));
    await reached(4 * (sends + 1));
    const [victim, survivor] = [worker, other];
    victim.kill('SIGKILL');
    await victim.exited;
    worker = survivor;
    other = start();
    await other.ready;
  }
  const { incident_id } = await theIncident(traces);
  await counted(traces);
  expect(await theIncident(traces)).toMatchObject({ incident_id, severity: 'warning' });
  expect(await incidents()).toHaveLength(1);
  expect(await toldOf('incident.created', 1)).toMatchObject([{ incident_id }]);
  await resolve(incident_id);
  for (const victim of [worker, other]) {
    victim.kill('SIGKILL');
    await victim.exited;
  }
  worker = start();
  await worker.ready;
  expect(await toldOf('incident.resolved', 1)).toMatchObject([
    { incident_id, resolution: 'manual', trace_count: traces },
  ]);
});
