// A process that is asked to stop during a stream: the stream ends in time, and its use is recorded
// and settled.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exitOf } from '../../../ops/launch/process/child.ts';
import { freePort } from '../../../ops/launch/process/ports.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { events, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { call, KEY, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

let database: TestDatabase;
let nats: TestNats;
let upstream: ModelServer;
let reader: TestApi;
let worker: TestWorker;

beforeAll(async () => {
  [database, nats, upstream] = await Promise.all([createTestDatabase(), startTestNats(), startModelServer()]);
  reader = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url, more: { SERVICE_TRACE_GRACE_MS: '50' } });
  await worker.ready;
});
afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await reader.close();
  await upstream.close();
  await nats.remove();
  await database.drop();
});

test('a stream that is open at the shutdown of the process is recorded with what was received', async () => {
  const port = await freePort();
  const child = spawn(process.execPath, [new URL('../../../api/main.ts', import.meta.url).pathname], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      PATH: process.env['PATH'],
      SERVICE_PORT: String(port),
      SERVICE_NATS_URL: nats.url,
      SERVICE_CLICKHOUSE_URL: database.url,
      SERVICE_PARTITIONS: '4',
      SERVICE_BOOTSTRAP_ORG_ID: ORG,
      SERVICE_BOOTSTRAP_API_KEY: KEY,
      SERVICE_LLM_BASE_URL: upstream.url,
      SERVICE_LOG_LEVEL: 'silent',
    },
  });
  const exited = exitOf(child);
  try {
    await once(child, 'message');
    upstream.behave(
      events([`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'The beginning' } }] })}\n\n`], false),
    );
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${KEY}`,
        'Content-Type': 'application/json',
        'X-Service-Trace-Id': 'trc_stopped',
      },
      body: JSON.stringify({ model: 'gpt-4o-mini', stream: true, messages: [{ role: 'user', content: 'Tell me' }] }),
    });
    const stream = response.body?.getReader();
    await stream?.read();
    child.kill('SIGTERM');
    await expect(stream?.read()).rejects.toThrow();
    expect(await exited).toMatchObject({ code: 0 });
  } finally {
    child.kill('SIGKILL');
  }
  let spans: Record<string, unknown>[] = [];
  await eventually(
    async () => {
      const { json } = await call(reader, 'GET', '/v1/traces/trc_stopped/tree');
      spans = ((json?.['data'] as Record<string, unknown> | undefined)?.['spans'] ?? []) as Record<string, unknown>[];
      return spans.length > 0;
    },
    { what: 'the trace of the stopped stream' },
  );
  expect(spans).toMatchObject([{ outcome: 'error', response: 'The beginning' }]);
});
