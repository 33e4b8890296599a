// Incidents from their first failing trace to their end, with a real API, a real worker and the
// real engine: the traces that open an incident, add to it and resolve it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { call, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { aFailingTenant, failures, runJob } from './an_incident.ts';

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
});

afterAll(() => service.close());

test('five failing traces of one kind open an incident, a sixth adds to it, and no other organization sees it', async () => {
  const tenant = await aFailingTenant(api);
  await tenant.send([
    ...failures(4),
    ...failures(4, { agent: 'other' }),
    ...failures(5, { error: 'ok', outcome: 'success' }),
  ]);
  await tenant.counted(13);
  expect(await tenant.incidents()).toEqual([]);
  const traces = await tenant.send(failures(1));
  const incident = await tenant.theIncident(5);
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
  const [created] = await tenant.toldOf('incident.created', 1);
  const { incident_id, cluster_id } = incident;
  expect(created).toEqual({
    event: 'incident.created',
    org_id: tenant.org,
    incident_id,
    cluster_id,
    severity: 'warning',
    trace_count: 5,
    first_trace_at: incident['first_trace_at'],
  });
  await tenant.send(failures(1, { outcome: 'timeout' }));
  expect(await tenant.theIncident(6)).toMatchObject({ incident_id, severity: 'warning' });
  const one = await tenant.get(`/v1/incidents/${incident_id}`);
  expect(one.json?.['data']).toMatchObject({ incident_id, trace_count: 6 });
  const ids = (one.json?.['data'] as { trace_ids: string[] }).trace_ids;
  expect(ids).toHaveLength(6);
  expect(ids).toContain(traces[0]);
  // The first organization of the test uses the same API and sees nothing of the incident.
  for (const answer of [
    await call(api, 'GET', `/v1/incidents/${incident_id}`),
    await call(api, 'POST', `/v1/incidents/${incident_id}/resolve`),
  ])
    expect([answer.status, answer.json?.['code']]).toEqual([404, 'incident_not_found']);
  expect((await call(api, 'GET', '/v1/incidents')).json).toMatchObject({
    data: [],
    meta: { total: 0, page: 1, has_more: false, next_cursor: null },
  });
  await tenant.send(failures(44));
  expect(await tenant.theIncident(50)).toMatchObject({ incident_id, severity: 'critical' });
  expect(await tenant.toldOf('incident.created', 1)).toHaveLength(1);
});

test('an incident is resolved after half an hour without a failing trace, and later failures open another one', async () => {
  const tenant = await aFailingTenant(api);
  await tenant.send(failures(5));
  const { incident_id, cluster_id } = await tenant.theIncident(5);
  await runJob(api, 29);
  expect(await tenant.theIncident(5)).toMatchObject({ incident_id });
  await runJob(api, 31);
  const resolved = await tenant.theIncident(5, 'resolved');
  expect(resolved).toMatchObject({
    incident_id,
    status: 'resolved',
    resolved_by: 'auto',
    resolved_at: expect.stringMatching(/Z$/) as string,
  });
  await eventually(async () => {
    const log = await tenant.get(`/orgs/${tenant.org}/audit-log?action=incident.resolve`);
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
  expect(await tenant.toldOf('incident.resolved', 1)).toEqual([
    {
      event: 'incident.resolved',
      org_id: tenant.org,
      incident_id,
      cluster_id,
      severity: 'warning',
      trace_count: 5,
      first_trace_at: resolved['first_trace_at'],
      resolved_at: resolved['resolved_at'],
      resolution: 'auto',
    },
  ]);
  await tenant.send(failures(4));
  await tenant.counted(9);
  expect(await tenant.incidents('?status=open')).toEqual([]);
  await tenant.send(failures(1));
  const next = await tenant.theIncident(5);
  expect(next.cluster_id).toBe(cluster_id);
  expect(next.incident_id).not.toBe(incident_id);
  expect((await tenant.incidents()).map((one) => one.incident_id)).toEqual([next.incident_id, incident_id]);
  await tenant.toldOf('incident.created', 2);
});

test('a member or a key with the scope resolves an incident once, and later failures open another one', async () => {
  const tenant = await aFailingTenant(api);
  await tenant.send(failures(5));
  const { incident_id } = await tenant.theIncident(5);
  const reader = await tenant.keyOf('traces:read');
  expect((await tenant.resolve(incident_id, reader)).json?.['code']).toBe('forbidden');
  const first = await tenant.resolve(incident_id);
  expect([first.status, first.json?.['data']]).toMatchObject([
    200,
    { incident_id, status: 'resolved', trace_count: 5, resolved_by: expect.stringMatching(/^ak_/) as string },
  ]);
  const again = await tenant.resolve(incident_id);
  expect([again.status, again.json?.['data']]).toEqual([200, first.json?.['data']]);
  expect(await tenant.incidents('?status=open')).toEqual([]);
  const [event] = await tenant.toldOf('incident.resolved', 1);
  expect(event).toMatchObject({ incident_id, resolution: 'manual', trace_count: 5 });
  await eventually(async () => {
    const log = await tenant.get(`/orgs/${tenant.org}/audit-log?action=incident.resolve`);
    const records = log.json?.['data'] as { target: unknown }[];
    return (
      records.length === 1 &&
      JSON.stringify(records[0]?.target) === JSON.stringify({ type: 'incident', id: incident_id })
    );
  });
  await tenant.send(failures(5));
  expect((await tenant.theIncident(5)).incident_id).not.toBe(incident_id);
  expect((await tenant.resolve('inc_0000000000000000')).json?.['code']).toBe('incident_not_found');
});
