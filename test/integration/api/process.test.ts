// The API as a process: the message that it prints when it cannot start, and a shutdown that loses
// no acknowledged event and fails no request.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { openLog } from '../../../ops/platform/nats/open_log.ts';
import { INGEST_STREAM } from '../../../schemas/streams.ts';
import { FINGERPRINT_HEADER, ingestBatchCodec } from '../../../schemas/codec.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { anEvent, call, INGEST, KEY, ORG } from './an_api.ts';

let nats: TestNats;
const started = new Set<ChildProcess>();

beforeAll(async () => {
  nats = await startTestNats();
});

afterAll(async () => {
  for (const child of started) if (child.exitCode === null) child.kill('SIGKILL');
  await nats.remove();
});

interface Run {
  child: ChildProcess;
  output: () => string;
  exit: Promise<number | null>;
}

function run(env: Record<string, string>): Run {
  const child = fork(new URL('../../../api/main.ts', import.meta.url), {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      SERVICE_NATS_URL: nats.url,
      SERVICE_CLICKHOUSE_URL: 'http://app:secret@127.0.0.1:9/millrace',
      SERVICE_PORT: '0',
      SERVICE_ADMIN_TOKEN: 'admin-token-of-the-tests',
      SERVICE_BOOTSTRAP_ORG_ID: ORG,
      SERVICE_BOOTSTRAP_API_KEY: KEY,
      ...env,
    },
  });
  started.add(child);
  let text = '';
  const gather = (chunk: Buffer) => (text += chunk.toString());
  child.stdout?.on('data', gather);
  child.stderr?.on('data', gather);
  return { child, output: () => text, exit: once(child, 'exit').then(([code]) => code as number | null) };
}

async function ready({ child, exit, output }: Run): Promise<{ url: string }> {
  const message = await Promise.race([
    once(child, 'message').then(([said]) => said as { ready: boolean; port: number }),
    exit.then(() => null),
  ]);
  if (message === null) throw new Error(`it ended: ${output()}`);
  expect(message.ready).toBe(true);
  return { url: `http://127.0.0.1:${message.port}` };
}

test('an API process stopped in the middle of traffic exits with 0, and everything that it answered 200 is in the log', async () => {
  const api = run({});
  const at = await ready(api);
  const acknowledged: string[] = [];
  let stopping = false;
  const sender = async (lane: number) => {
    for (let sent = 0; !stopping || sent < 5; sent++) {
      const name = `n-${lane}-${sent}`;
      const answer = await call(at, 'POST', `${INGEST}/custom`, { body: anEvent({ name }) }).catch(() => null);
      if (answer === null) return;
      if (answer.status === 200) acknowledged.push(name);
    }
  };
  const senders = Array.from({ length: 8 }, (_, lane) => sender(lane));
  await eventually(() => acknowledged.length > 100, { what: 'traffic' });
  stopping = true;
  api.child.kill('SIGTERM');
  expect(await api.exit).toBe(0);
  await Promise.all(senders);

  const nc = await connectNats({ url: nats.url, name: 'reader', waitMs: 5000 });
  const log = await openLog(nc, { replicas: 1, logBytesMax: 16 * 1024 ** 3 });
  const { state } = await log.jsm.streams.info(INGEST_STREAM);
  const stored = new Set<string>();
  for (let seq = 1; seq <= state.last_seq; seq++) {
    const message = await log.jsm.streams.getMessage(INGEST_STREAM, { seq });
    if (message === null) continue;
    for (const { body } of ingestBatchCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)).events)
      stored.add((JSON.parse(body) as { name: string }).name);
  }
  await nc.close();
  expect(acknowledged.filter((name) => !stored.has(name))).toEqual([]);
});

/** Time for which an API process that was stopped still takes requests: callers need a part of it. */
const DRAIN_DELAY_MS = 4000;

/** Sends an event over the connections of an agent. Resolves with the response, read to its end. */
async function send(at: { url: string }, agent: Agent, name: string): Promise<IncomingMessage> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { 'X-Org-Api-Key': KEY, 'X-Org-Id': ORG, 'Content-Type': 'application/json' };
    request(`${at.url}${INGEST}/custom`, { method: 'POST', agent, headers }, resolve)
      .on('error', reject)
      .end(JSON.stringify(anEvent({ name })));
  });
  response.resume();
  await once(response, 'end');
  return response;
}

test('no request of callers that keep their connections fails while an API process stops, until its responses tell them to leave', async () => {
  const api = run({ SERVICE_DRAIN_DELAY_MS: String(DRAIN_DELAY_MS) });
  const at = await ready(api);
  let answered = 0;
  /** Sends events over one connection until a response ends it. */
  const caller = async (lane: number): Promise<number[]> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const statuses: number[] = [];
    for (let connection: string | undefined = 'keep-alive'; connection !== 'close'; answered += 1) {
      const { statusCode = 0, headers } = await send(at, agent, `kept-${lane}-${answered}`);
      statuses.push(statusCode);
      ({ connection } = headers);
    }
    agent.destroy();
    return statuses;
  };
  const callers = Promise.all(Array.from({ length: 16 }, (_, lane) => caller(lane)));
  await eventually(() => answered > 100, { what: 'traffic' });
  api.child.kill('SIGTERM');
  const statuses = await callers;
  expect(new Set(statuses.flat())).toEqual(new Set([200]));
  const health = await fetch(`${at.url}/healthz`);
  expect([health.status, await health.json()]).toEqual([503, expect.objectContaining({ status: 'draining' })]);
  expect(await api.exit).toBe(0);
});

test('an API process exits by itself when its parent is gone', async () => {
  const api = run({ MILLRACE_SUPERVISED: '1' });
  await ready(api);
  api.child.disconnect();
  expect(await api.exit).toBe(0);
});

test('a port in use is one clear line and exit code 1', async () => {
  const other = createServer();
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const port = String((other.address() as AddressInfo).port);
  const api = run({ SERVICE_PORT: port, SERVICE_LOG_LEVEL: 'silent' });
  expect(await api.exit).toBe(1);
  expect(api.output().trim()).toBe(`Port ${port} on 127.0.0.1 is in use; set SERVICE_PORT to a free one`);
  other.close();
});

test('an API process without its addresses says which settings it needs', async () => {
  const api = run({ SERVICE_NATS_URL: '' });
  expect(await api.exit).toBe(1);
  expect(api.output().trim().split('\n')).toEqual([expect.stringContaining('SERVICE_NATS_URL')]);
});

test('a bootstrap key of another organization stops the start', async () => {
  const first = run({});
  await ready(first);
  first.child.kill('SIGTERM');
  await first.exit;
  const second = run({ SERVICE_BOOTSTRAP_ORG_ID: 'org_second', SERVICE_LOG_LEVEL: 'silent' });
  expect(await second.exit).toBe(1);
  expect(second.output()).toContain('SERVICE_BOOTSTRAP_API_KEY');
  expect(second.output()).not.toContain(KEY);
});
