// Incidents while a store is down: nothing is lost, and delayed work is done once the store is
// back.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, INGEST, startTestApi, type TestApi } from '../api/an_api.ts';

let clickhouse: TestEngine;
let nats: TestNats;
let api: TestApi;
let worker: TestWorker;
let sent = 0;

beforeAll(async () => {
  [clickhouse, nats] = await Promise.all([startTestEngine(), startTestNats()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: clickhouse.url });
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: clickhouse.url, more: { SERVICE_TRACE_GRACE_MS: '50' } });
  await worker.ready;
});

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await api.close();
  await nats.remove();
  await clickhouse.remove();
});

async function fail(count: number): Promise<void> {
  const events = Array.from({ length: count }, () => ({
    name: 'root',
    outcome: 'error',
    duration_ms: 1,
    attributes: { error_message: 'down', serial: ++sent },
  }));
  await eventually(async () => (await call(api, 'POST', `${INGEST}/custom`, { body: { events } })).status === 200, {
    what: 'an ingest',
  });
}

const list = (query = ''): Promise<Answer> => call(api, 'GET', `/v1/incidents${query}`);
interface Incident {
  incident_id: string;
  trace_count: number;
}
async function theOpenOne(traces: number): Promise<string> {
  let found: Incident[] = [];
  await eventually(
    async () => {
      found = ((await list('?status=open')).json?.['data'] ?? []) as Incident[];
      return found[0]?.trace_count === traces;
    },
    { what: `an incident of ${traces} traces` },
  );
  expect(found).toHaveLength(1);
  return found[0]?.incident_id ?? '';
}

const totalOf = ({ json }: Answer): number => (json?.['meta'] as { total: number }).total;

/** Returns the names and ids of the published incident events, each once. */
async function told(): Promise<string[]> {
  const incidents = (await toldEvents(api.log)).filter(({ event }) => event.startsWith('incident.'));
  return [
    ...new Map(
      incidents.map(({ event, event_id, payload }) => [
        event_id,
        `${event} ${(JSON.parse(payload) as Incident).incident_id}`,
      ]),
    ).values(),
  ];
}

test('failures during an outage of ClickHouse are counted when it is back', async () => {
  await fail(4);
  await eventually(async () => totalOf(await call(api, 'GET', '/v1/traces')) === 4, { what: 'four traces' });
  await clickhouse.kill();
  await fail(3);
  expect((await list()).status).toBe(502);
  await clickhouse.start();
  const id = await theOpenOne(7);
  await eventually(async () => (await told()).length === 1, { what: 'an event' });
  expect(await told()).toEqual([`incident.created ${id}`]);
});

test('failures around a restart of nats-server are counted', async () => {
  const id = await theOpenOne(7);
  await fail(2);
  await nats.kill();
  await nats.start();
  await fail(2);
  expect(await theOpenOne(11)).toBe(id);
});

test('resolving an incident while ClickHouse is away is rejected, or done and reported when it is back', async () => {
  const id = await theOpenOne(11);
  await clickhouse.kill();
  const refused = await call(api, 'POST', `/v1/incidents/${id}/resolve`);
  expect([refused.status, refused.json?.['code']]).toEqual([502, 'upstream_unavailable']);
  await clickhouse.start();
  await eventually(async () => (await call(api, 'POST', `/v1/incidents/${id}/resolve`)).status === 200, {
    what: 'resolved',
  });
  await eventually(async () => (await told()).length === 2, { what: 'an event' });
  expect(await told()).toEqual([`incident.created ${id}`, `incident.resolved ${id}`]);
  expect((await list('?status=open')).json?.['data']).toEqual([]);
});
