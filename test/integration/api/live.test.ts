// The live stream of a whole service: each topic from its cause to the client, callers, and ends.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publishRecord } from '../../../ops/platform/nats/publish_record.ts';
import { serviceEventsCodec } from '../../../schemas/codec.ts';
import { incidentKey, type IncidentRecord } from '../../../schemas/records/incident.ts';
import { longJobKey, newLongJob } from '../../../schemas/records/job_record.ts';
import { EVENTS_SUBJECT } from '../../../schemas/streams.ts';
import { EventStream } from '../../support/event_stream.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Caller, type Tenant } from '../a_tenant.ts';
import { makeMember } from './a_cast.ts';
import { asUser, type TestApi, tokenOf } from './an_api.ts';

let service: TestService;
let api: TestApi;
let tenant: Tenant;
let other: Tenant;
const open: EventStream[] = [];

beforeAll(async () => {
  service = await TestService.start();
  api = await service.startApi();
  [tenant, other] = await Promise.all([aTenant({ api }), aTenant({ api })]);
});
afterAll(async () => {
  for (const stream of open) stream.close();
  await service.close();
});

/** Opens a stream and resolves once it follows its topics. */
async function listen(query: string, as: Caller = tenant.key, at: TestApi = api): Promise<EventStream> {
  const stream = await EventStream.open(`${at.url}/v1/live?${query}`, as);
  open.push(stream);
  expect(stream.status).toBe(200);
  await stream.next('ready');
  return stream;
}

const event = (trace_id: string, fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  name: 'step',
  event_type: 'llm',
  model: 'gpt-4o',
  outcome: 'success',
  duration_ms: 5,
  trace_id,
  attributes: { agent_id: 'planner', prompt: 'p', response: 'r' },
  ...fields,
});
const send = (events: Record<string, unknown>[], by = tenant) => by.ingest('custom', { events });
const tracesIn = (stream: EventStream): Record<string, unknown>[] =>
  stream.of('traces').flatMap(({ traces }) => traces as Record<string, unknown>[]);
const has = (data: Record<string, unknown>, trace_id: string, complete?: boolean): boolean =>
  (data['traces'] as Record<string, unknown>[]).some(
    (trace) => trace['trace_id'] === trace_id && (complete === undefined || trace['complete'] === complete),
  );

describe('the topic traces', () => {
  it('reports a trace when it starts and when it is complete, as the list shows it', async () => {
    const stream = await listen('topics=traces');
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(stream.headers.get('cache-control')).toContain('no-store');
    expect(stream.headers.get('x-accel-buffering')).toBe('no');
    expect(stream.retries).toHaveLength(1);
    await send([event('live-1')]);
    const done = await stream.next('traces', (data) => has(data, 'live-1', true));
    const { complete, ...item } =
      (done['traces'] as Record<string, unknown>[]).find(({ trace_id }) => trace_id === 'live-1') ?? {};
    expect([complete, done['dropped']]).toEqual([true, 0]);
    const listed = await tenant.get('/v1/traces?trace_ids=live-1');
    expect(listed.json?.['data']).toEqual([item]);
  });

  it('reports only traces that match the filters of the list', async () => {
    const [byAgent, byModel, none] = await Promise.all([
      listen('topics=traces&agent_id=writer&not_outcome=error'),
      listen('topics=traces&model=o3'),
      listen('topics=traces&min_cost_usd=1000000'),
    ]);
    const about = (agent_id: string) => ({ attributes: { agent_id, prompt: 'p' } });
    await send([
      event('f-1', about('writer')),
      event('f-2', { ...about('writer'), outcome: 'error' }),
      event('f-3', { ...about('planner'), model: 'o3' }),
    ]);
    await Promise.all([
      byAgent.next('traces', (data) => has(data, 'f-1', true)),
      byModel.next('traces', (data) => has(data, 'f-3', true)),
    ]);
    // The trace that comes last shows that the batches before it were sent to all.
    await send([event('f-4', about('writer'))]);
    await byAgent.next('traces', (data) => has(data, 'f-4', true));
    expect(new Set(tracesIn(byAgent).map(({ trace_id }) => trace_id))).toEqual(new Set(['f-1', 'f-4']));
    expect(new Set(tracesIn(byModel).map(({ trace_id }) => trace_id))).toEqual(new Set(['f-3']));
    expect(none.of('traces')).toEqual([]);
  });

  it('reports nothing of another organization, whatever the topic', async () => {
    const stream = await listen('topics=traces,trace:own-1,incidents,jobs', other.key);
    await send([event('own-1')]);
    const mine = await listen('topics=traces');
    await send([event('own-2')]);
    await mine.next('traces', (data) => has(data, 'own-2', true));
    await send([event('theirs')], other);
    await stream.next('traces', (data) => has(data, 'theirs', true));
    expect(new Set(tracesIn(stream).map(({ trace_id }) => trace_id))).toEqual(new Set(['theirs']));
    expect(stream.of('trace')).toEqual([]);
  });
});

it('the topic of one trace reports the trace whenever spans of it land, and when it is complete', async () => {
  const stream = await listen('topics=trace:one');
  // A span with a parent: the trace stays open until its root arrives.
  await send([event('one', { span_id: 'b', parent_span_id: 'a' })]);
  await stream.next('trace', ({ trace }) => (trace as { span_count: number }).span_count === 1);
  await send([event('one', { span_id: 'c', parent_span_id: 'a' })]);
  await stream.next('trace', ({ trace }) => (trace as { span_count: number }).span_count === 2);
  await send([event('one', { span_id: 'a' })]);
  await stream.next('trace', ({ trace }) => (trace as { complete: boolean }).complete);
});

describe('other topics', () => {
  it('report a changed incident and a changed job', async () => {
    const stream = await listen('topics=incidents,jobs');
    const incident: IncidentRecord = {
      org_id: tenant.org,
      incident_id: 'inc_0011223344556677',
      cluster_id: 'clu_0011223344556677',
      agent_id: 'planner',
      root_span_name: '',
      error: 'it broke',
      sample: 'it broke',
      version: 1,
      settled: 1,
      after_ms: 0,
      from_ms: 1,
      last_ms: 2,
      opened_at: new Date(0).toISOString(),
      opened: { trace_count: 50, first_trace_ms: 1, last_trace_ms: 2 },
      closed: null,
    };
    await (
      await api.log.bucket('incidents')
    ).put(incidentKey(tenant.org, incident.cluster_id), JSON.stringify(incident));
    expect(await stream.next('incident')).toEqual({
      incident_id: incident.incident_id,
      cluster_id: incident.cluster_id,
      status: 'open',
      severity: 'critical',
      agent_id: 'planner',
      root_span_name: null,
      error: 'it broke',
      trace_count: 50,
      opened_at: incident.opened_at,
      resolved_at: null,
    });
    const job = newLongJob({
      job_id: 'job_live',
      org_id: tenant.org,
      kind: 'unknown',
      args: { secret: 1 },
      created_at: incident.opened_at,
    });
    await (await api.log.bucket('job_records')).put(longJobKey(tenant.org, job.job_id), JSON.stringify(job));
    const told = await stream.next('job');
    expect(told).toMatchObject({ job_id: 'job_live', progress: { done: 0, total: 0 } });
    expect(told).not.toHaveProperty('args');
  });

  it('report the progress of an eval to its end', async () => {
    const stream = await listen('topics=evals');
    await send([event('judged')]);
    await eventually(
      async () => ((await tenant.get('/v1/traces?trace_ids=judged')).json?.['data'] as unknown[]).length === 1,
    );
    const judge = await tenant.call('POST', '/v1/judges', {
      body: { name: 'r', kind: 'deterministic', rule: { type: 'contains', value: 'r' }, threshold: { pass: 1 } },
    });
    const { judge_id } = judge.json?.['data'] as { judge_id: string };
    const started = await tenant.call('POST', '/v1/evals', { body: { judge_id, trace_ids: ['judged'] } });
    const { eval_id } = started.json?.['data'] as { eval_id: string };
    const done = await stream.next('eval', (data) => data['status'] === 'complete', 60_000);
    expect(done).toMatchObject({ eval_id, judge_id, progress: { done: 1, total: 1 } });
  });

  it('report what happens to a budget', async () => {
    const stream = await listen('topics=budgets');
    const payload = {
      event: 'budget.hard_exceeded',
      org_id: tenant.org,
      resource: 'tokens',
      used: 11,
      hard_limit: 10,
      period_start: new Date(0).toISOString(),
    };
    const happened = {
      event_id: 'evt_live',
      event: payload.event,
      org_id: tenant.org,
      created_at: Date.now(),
      payload: JSON.stringify(payload),
    };
    await publishRecord(
      api.log,
      EVENTS_SUBJECT,
      serviceEventsCodec,
      { events: [happened] },
      {
        msgID: 'evt_live',
        timeoutMs: 5000,
      },
    );
    expect(await stream.next('budget')).toEqual(payload);
  });
});

describe('callers', () => {
  const status = async (query: string, as: Caller): Promise<number> => {
    const stream = await EventStream.open(`${api.url}/v1/live?${query}`, as);
    stream.close();
    return stream.status;
  };

  it('need the permission of each topic', async () => {
    const owner = `u_${tenant.org}`;
    const [viewer, member] = await Promise.all(
      (['viewer', 'member'] as const).map(async (role) =>
        asUser((await makeMember(api, role, { org: tenant.org, owner })).token, tenant.org),
      ),
    );
    const reader = await tenant.keyOf('traces:read');
    await eventually(async () => (await status('topics=traces', reader)) === 200, { what: 'the key' });
    expect(await status('topics=traces', viewer ?? {})).toBe(403);
    expect(await status('topics=traces,budgets,evals,jobs,incidents', member ?? {})).toBe(200);
    expect(await status('topics=traces,incidents,trace:x', reader)).toBe(200);
    for (const topic of ['budgets', 'evals', 'jobs']) expect(await status(`topics=traces,${topic}`, reader)).toBe(403);
  });

  it('name their organization in the query where they can send no header, as EventSource cannot', async () => {
    const cookie = { Cookie: `svc_session=${await tokenOf({ sub: `u_${tenant.org}` })}` };
    expect(await status(`topics=traces&org_id=${tenant.org}`, cookie)).toBe(200);
    expect(await status(`topics=traces&org_id=${other.org}`, cookie)).toBe(403);
    expect(await status(`topics=traces&org_id=${other.org}`, tenant.key)).toBe(403);
    expect(await status('topics=traces', cookie)).toBe(422);
  });

  it('get a clear error for topics and parameters that do not exist', async () => {
    const detail = async (query: string) => (await tenant.get(`/v1/live${query}`)).json?.['detail'];
    expect(await detail('')).toContain('topics: ');
    expect(await detail('?topics=')).toBe('topics: must name at least one topic');
    expect(await detail('?topics=traces,colours')).toContain('must be one of traces, incidents, budgets, evals, jobs');
    expect(await detail('?topics=traces&search=x')).toContain('search');
    expect(await detail('?topics=traces&outcome=bad')).toContain('outcome');
  });

  it('are disconnected once their key is revoked', async () => {
    const made = await tenant.call('POST', `/orgs/${tenant.org}/api-keys`, {
      headers: tenant.owner,
      body: { name: 'k', scopes: ['traces:read'] },
    });
    const { raw_key, id } = made.json as { raw_key: string; id: string };
    const as = { 'X-Org-Api-Key': raw_key, 'X-Org-Id': tenant.org };
    const stream = await listen('topics=traces', as);
    await tenant.call('DELETE', `/orgs/${tenant.org}/api-keys/${id}`, { headers: tenant.owner });
    expect(await stream.next('bye', undefined, 60_000)).toEqual({ reason: 'revoked' });
    await eventually(() => stream.ended);
  });
});

it('a drain ends every stream with the time after which to connect again', async () => {
  const stopping = await service.startApi();
  const streams = await Promise.all([1, 2, 3].map(() => listen('topics=traces', tenant.key, stopping)));
  // Resolves only when every response has ended.
  await stopping.close();
  for (const stream of streams) {
    await eventually(() => stream.ended);
    expect(stream.of('bye')).toEqual([{ reason: 'drain' }]);
    expect(stream.retries).toHaveLength(2);
  }
});
