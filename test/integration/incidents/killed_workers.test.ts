// Incidents while workers are killed: each trace counts once, and each platform event is published once.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { startTestApi, type TestApi } from '../api/an_api.ts';
import { aFailingTenant, failures } from './an_incident.ts';

let database: TestDatabase;
let nats: TestNats;
let api: TestApi;
let worker: TestWorker;
let other: TestWorker;

async function start(): Promise<TestWorker> {
  const started = startWorker({
    natsUrl: nats.url,
    clickhouseUrl: database.url,
    more: { SERVICE_TRACE_GRACE_MS: '50' },
  });
  await started.ready;
  return started;
}

async function kill(victim: TestWorker): Promise<void> {
  victim.kill('SIGKILL');
  await victim.exited;
}

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  worker = await start();
  other = await start();
});

afterAll(async () => {
  await Promise.all([worker, other].map(kill));
  await api.close();
  await nats.remove();
  await database.drop();
});

test('workers that count side by side and are killed at any moment count each trace once and open one incident', async () => {
  const tenant = await aFailingTenant(api);
  const traces = 20;
  const rows = async (): Promise<number> =>
    Number(await database.run(`SELECT sum(spans * sign) FROM traces WHERE org_id = '${tenant.org}'`));
  /**
   * Waits for ever later stages of the sent traces: sent, landed, complete, counted, incident
   * published.
   */
  const stages: ((sent: number) => Promise<unknown>)[] = [
    () => Promise.resolve(),
    (sent) => eventually(async () => (await rows()) >= sent, { what: 'the rows' }),
    (sent) => eventually(async () => (await tenant.completed()) >= sent, { what: 'the completions' }),
    (sent) => tenant.counted(sent),
    () => tenant.toldOf('incident.created', 1),
  ];
  for (const [sends, reached] of stages.entries()) {
    await tenant.send(failures(4));
    await reached(4 * (sends + 1));
    const [victim, survivor] = [worker, other];
    await kill(victim);
    worker = survivor;
    other = await start();
  }
  const { incident_id } = await tenant.theIncident(traces);
  await tenant.counted(traces);
  expect(await tenant.theIncident(traces)).toMatchObject({ incident_id, severity: 'warning' });
  expect(await tenant.incidents()).toHaveLength(1);
  expect(await tenant.toldOf('incident.created', 1)).toMatchObject([{ incident_id }]);
  await tenant.resolve(incident_id);
  for (const victim of [worker, other]) await kill(victim);
  worker = await start();
  expect(await tenant.toldOf('incident.resolved', 1)).toMatchObject([
    { incident_id, resolution: 'manual', trace_count: traces },
  ]);
});
