// Incidents as the API returns them: their errors and times, and the pages and filters of their
// list.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/wait.ts';
import { type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { aFailingTenant, failures, type Incident, MINUTE_MS, runJob } from './an_incident.ts';

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
});

afterAll(() => service.close());

test('traces are counted by the time at which they failed, not at which they arrived', async () => {
  const tenant = await aFailingTenant(api);
  await tenant.send([0, 10, 20, 30, 40, 50].map((ago) => ({ error: 'slow drip', ago })));
  await tenant.send([100, 101, 102, 103, 104].map((ago) => ({ error: 'long ago', ago })));
  await tenant.send([20, 21, 22, 23, 24].map((ago) => ({ error: 'just now', ago })));
  await tenant.counted(16);
  // The worker may open an incident just after a run of the job, and the next run resolves it.
  await eventually(
    async () => {
      await runJob(api, 0);
      const found = (await tenant.incidents()).map(({ error, status }) => `${String(error)}: ${status}`).toSorted();
      return found.join() === 'just now: open,long ago: resolved';
    },
    { what: 'the incident of long ago, resolved' },
  );
  const hour = (ago: number) => new Date(Date.now() - ago * MINUTE_MS).toISOString();
  expect((await tenant.incidents(`?until=${hour(60)}`)).map(({ error }) => error)).toEqual(['long ago']);
  expect((await tenant.incidents(`?since=${hour(60)}`)).map(({ error }) => error)).toEqual(['just now']);
});

test('the error of an incident is the first of the sources that the contract lists', async () => {
  const tenant = await aFailingTenant(api);
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
      name: `root ${index}`,
      outcome: 'error',
      duration_ms: 1,
      ...(response === undefined ? {} : { response }),
      attributes: { ...attributes, serial: `${index}-${i}` },
    }));
    await tenant.ingest('custom', { events });
  }
  await eventually(async () => (await tenant.incidents()).length === all.length, { what: 'an incident of each' });
  expect((await tenant.incidents()).map(({ error }) => error).toSorted()).toEqual(
    all.map(({ error }) => error).toSorted(),
  );
});

test('the list of incidents pages, filters and names the field of an invalid query', async () => {
  const tenant = await aFailingTenant(api);
  for (const agent of ['a', 'b', 'c']) {
    await tenant.send(failures(5, { agent }));
    await eventually(async () => (await tenant.incidents(`?agent_id=${agent}`)).length === 1, {
      what: `an incident of ${agent}`,
    });
  }
  const walk = async (path: string) =>
    (await tenant.get(path)).json as { data: Incident[]; meta: Record<string, unknown> };
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
    const answer = await tenant.get(`/v1/incidents?${String(query)}`);
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(answer.json?.['detail']).toContain(field);
  }
});

test('the series of an incident counts its traces and earlier ones of its cluster, and is zero in between', async () => {
  const tenant = await aFailingTenant(api);
  await tenant.send([100, 101, 102, 103, 104].map((ago) => ({ error: 'drip', ago })));
  await tenant.send([3, 4, 5, 6, 7].map((ago) => ({ error: 'drip', ago })));
  await tenant.send([4, 5].map((ago) => ({ error: 'another', ago })));
  await tenant.counted(12);
  await runJob(api, 0);
  const all = await tenant.incidents();
  const open = all.find(({ status }) => status === 'open');
  const resolved = all.find(({ status }) => status === 'resolved');
  interface Series {
    bucket_seconds: number;
    opened_at: string;
    resolved_at: string | null;
    buckets: { at: string; traces: number; of_incident: number }[];
  }
  const series = async (incident_id: string | undefined) => tenant.get(`/v1/incidents/${incident_id ?? ''}/series`);
  const ofOpen = (await series(open?.incident_id)).json?.['data'] as Series;
  const sum = ({ buckets }: Series, field: 'traces' | 'of_incident') =>
    buckets.reduce((total, bucket) => total + bucket[field], 0);
  expect([ofOpen.bucket_seconds, ofOpen.resolved_at, ofOpen.opened_at]).toEqual([60, null, open?.['opened_at']]);
  expect([sum(ofOpen, 'traces'), sum(ofOpen, 'of_incident')]).toEqual([5, 5]);
  const starts = ofOpen.buckets.map(({ at }) => Date.parse(at));
  expect(starts.every((at, index) => index === 0 || at - (starts[index - 1] ?? 0) === MINUTE_MS)).toBe(true);
  const ofResolved = (await series(resolved?.incident_id)).json?.['data'] as Series;
  expect(ofResolved.resolved_at).toBe(resolved?.['resolved_at']);
  expect(sum(ofResolved, 'of_incident')).toBe(5);
  expect(ofResolved.buckets.length).toBeLessThanOrEqual(120);
  const cluster = open?.cluster_id ?? '';
  const sameCluster = await tenant.incidents(`?cluster_id=${cluster}`);
  expect(sameCluster.map(({ cluster_id }) => cluster_id)).toEqual([cluster, cluster]);
  expect(await tenant.incidents('?cluster_id=clu_0000000000000000')).toEqual([]);
  const other = await aFailingTenant(api);
  expect((await other.get(`/v1/incidents/${open?.incident_id ?? ''}/series`)).status).toBe(404);
});
