// Readiness and the merged metrics: both depend only on the heartbeats that workers write.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BEAT_MS } from '../../../pipeline/worker/live_workers.ts';
import { sendBeat } from '../../../ops/exchange/heartbeats.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { call, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let database: TestDatabase;
let api: TestApi;
let worker: Server;

beforeAll(async () => {
  nats = await startTestNats();
  database = await createTestDatabase();
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  worker = createServer((_req, res) =>
    res.end(
      '# HELP millrace_pipeline_open_traces Open\n# TYPE millrace_pipeline_open_traces gauge\nmillrace_pipeline_open_traces{process="w1"} 7\n',
    ),
  );
  await new Promise<void>((resolve) => worker.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  worker.close();
  await api.close();
  await database.drop();
  await nats.remove();
});

const ready = async () => {
  const { status, json } = await call(api, 'GET', '/readyz');
  return { status, checks: json?.['checks'] };
};

test('the service is ready when every partition has a live owner, and its metrics are those of all processes', async () => {
  await eventually(async () => JSON.stringify((await ready()).checks).includes('"clickhouse":"ok"'), {
    what: 'the migrations',
  });
  expect(await ready()).toEqual({
    status: 503,
    checks: { nats: 'ok', clickhouse: 'ok', consumers: 'down', budgets: 'ok' },
  });

  const kv = await api.log.bucket('partitions');
  const metrics_url = `http://127.0.0.1:${(worker.address() as AddressInfo).port}/metrics`;
  const heartbeat = async () => {
    sendBeat(api.log.nc, { worker_id: 'w1', metrics_url, ended: false });
    await api.log.nc.flush();
  };
  const beats = setInterval(() => void heartbeat(), BEAT_MS);
  const own = (partition: number, owner: string) =>
    kv.put(
      `partition.${partition}`,
      JSON.stringify({ partition, owner, epoch: 1, checkpoint: 0, completed_through: 0, at: new Date().toISOString() }),
    );
  for (const partition of [0, 1, 2]) await own(partition, 'w1');
  await own(3, 'w_dead');
  await eventually(async () => JSON.stringify((await ready()).checks).includes('"consumers":"down"'));
  await own(3, 'w1');
  await eventually(async () => (await ready()).status === 200);

  const { text } = await call(api, 'GET', '/metrics');
  expect(text).toContain('millrace_pipeline_open_traces{process="w1"} 7');
  expect(text.match(/^# TYPE http_request_duration_seconds /gm)).toHaveLength(1);
  expect(text).toMatch(/^millrace_log_publish_seconds_count/m);

  clearInterval(beats);
  await eventually(async () => (await ready()).status === 503, { what: 'the end of a worker without a heartbeat' });
  await eventually(async () => {
    await heartbeat();
    return (await ready()).status === 200;
  });
});

test('without NATS the service says so, and reads from memory continue', async () => {
  await nats.kill();
  await eventually(async () => JSON.stringify((await ready()).checks).includes('"nats":"down"'));
  expect((await call(api, 'GET', '/orgs/org_test')).status).toBe(200);
  await nats.start();
  await eventually(async () => JSON.stringify((await ready()).checks).includes('"nats":"ok"'));
});
