// Calls to Anthropic's API through two API processes: 128 concurrent streams exceed a limit in USD, of an
// organization or of a key, by no more than the call that reaches it, and a process that is killed in
// mid-stream keeps nothing of a budget reserved.
import { type ChildProcess, fork } from 'node:child_process';
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { type ModelBehaviour, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { type ApiAddress, lateAnswers, TestOrg } from '../budgets/a_budget.ts';
import { LimitedKey } from '../keys/a_key.ts';
import { event, question } from './anthropic_shapes.ts';

vi.setConfig({ testTimeout: 120_000 });

const STREAMS = 128;
/** Its prices are set below: 1 USD for a million input tokens, 10 for a million output tokens. */
const MODEL = 'claude-of-the-test';
const PRICES = [{ model: MODEL, input_usd_per_mtok: 1, output_usd_per_mtok: 10 }];
const USAGE = { input_tokens: 100, output_tokens: 90 };
const COST = (100 * 1 + 90 * 10) / 1e6;
const CALLS = 600;

interface ApiProcess {
  child: ChildProcess;
  api: ApiAddress;
}

let database: TestDatabase;
let nats: TestNats;
let upstream: ModelServer;
let worker: TestWorker;
let processes: ApiProcess[];

async function startApi(): Promise<ApiProcess> {
  const urls = {
    TEST_NATS_URL: nats.url,
    TEST_CLICKHOUSE_URL: database.url,
    TEST_ANTHROPIC_URL: upstream.url.replace('/v1', ''),
  };
  const child = fork(new URL('../../support/api_worker.ts', import.meta.url), [], { env: { ...process.env, ...urls } });
  const api = await new Promise<ApiAddress>((resolve, reject) => {
    child.once('message', (told) => {
      resolve(told as ApiAddress);
    });
    child.once('exit', (status) => {
      reject(new Error(`an API ended with ${String(status)}`));
    });
  });
  return { child, api };
}
const apis = (): ApiAddress[] => processes.map(({ api }) => api);

/** Streams an answer; the user `open` gets one that does not end. */
const model: ModelBehaviour = (res, { body }) => {
  const { metadata } = JSON.parse(body.toString()) as { metadata?: { user_id?: string } };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: MODEL, content: [], stop_reason: null };
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.write(event({ type: 'message_start', message: { ...message, usage: { ...USAGE, output_tokens: 1 } } }));
  res.write(event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }));
  res.write(event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Yes.' } }));
  if (metadata?.user_id === 'open') return;
  res.write(event({ type: 'content_block_stop', index: 0 }));
  res.write(event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: USAGE }));
  res.end(event({ type: 'message_stop' }));
};

beforeAll(async () => {
  [database, nats, upstream] = await Promise.all([createTestDatabase(), startTestNats(), startModelServer()]);
  upstream.behave(model);
  const client = createClickHouse({ url: database.url });
  await migrate(client, {});
  await client.close();
  processes = await Promise.all([startApi(), startApi()]);
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url, more: { SERVICE_TRACE_GRACE_MS: '50' } });
  await worker.ready;
}, 90_000);
afterAll(async () => {
  for (const { child } of processes) child.kill('SIGKILL');
  worker.kill('SIGKILL');
  await worker.exited;
  await upstream.close();
  await nats.remove();
  await database.drop();
});

const keyOf = (org: TestOrg): string => org.request({ url: '' }, '').headers['X-Org-Api-Key'] ?? '';
const clientsOf = (apiKey: string): Anthropic[] =>
  apis().map(({ url }) => new Anthropic({ apiKey, baseURL: url, maxRetries: 0 }));
const params = { model: MODEL, max_tokens: 90, messages: question };
const streamed = async (client: Anthropic): Promise<boolean> => {
  try {
    await client.messages.stream(params).finalMessage();
    return true;
  } catch (error) {
    if (error instanceof Anthropic.RateLimitError) return false;
    throw error;
  }
};

/**
 * Streams from every lane, from each process in turn, until each lane was rejected; then from one lane,
 * because the others may have been rejected for reservations that were not used up.
 * @returns the admitted calls
 */
async function flood(apiKey: string): Promise<number> {
  const clients = clientsOf(apiKey);
  let admitted = 0;
  const lane = async (first: number): Promise<void> => {
    for (let turn = first; ; turn++) {
      const client = clients[turn % clients.length];
      if (client === undefined || !(await streamed(client))) return;
      admitted++;
    }
  };
  await Promise.all(Array.from({ length: STREAMS }, (_, first) => lane(first)));
  for (let before = -1; before !== admitted;) {
    before = admitted;
    await lane(0);
  }
  return admitted;
}

/** Maximum number of floods, of which one has to meet deciders that all answer in time. */
const FLOODS_MAX = 5;

/**
 * Floods keys, each with a limit of its own, until every decider answered in time: on a machine that has no
 * time for a process for 200 ms, two processes may decide near the limit.
 */
async function floodInTime<Key>(make: () => Promise<Key>, rawOf: (key: Key) => string): Promise<[Key, number]> {
  for (let floods = 1; ; floods += 1) {
    const [key, before] = [await make(), await lateAnswers(apis())];
    const admitted = await flood(rawOf(key));
    if ((await lateAnswers(apis())) === before || floods === FLOODS_MAX) return [key, admitted];
  }
}

async function pricedOrg(): Promise<TestOrg> {
  const org = await TestOrg.make(apis());
  const [first] = apis();
  if (first === undefined) throw new Error('there is an API');
  expect((await org.call(first, 'PUT', `/orgs/${org.id}/prices`, { prices: PRICES })).status).toBe(200);
  for (const api of apis())
    await eventually(
      async () => JSON.stringify((await org.call(api, 'GET', `/orgs/${org.id}/prices`)).json?.['data']).includes(MODEL),
      { what: 'the prices in every process' },
    );
  return org;
}

/**
 * Checks that the calls cost at most one call, or a thousandth, more than the limit.
 * @returns the overshoot in words
 */
function expectWithin(admitted: number, limitUsd: number): string {
  expect(admitted * COST).toBeGreaterThanOrEqual(limitUsd - COST / 2);
  expect(admitted * COST).toBeLessThanOrEqual(limitUsd + Math.max(COST, limitUsd / 1000) + COST / 2);
  const over = Math.round(admitted - limitUsd / COST);
  return `${STREAMS} streams over two processes: ${admitted} calls of ${COST} USD against a limit of ${limitUsd.toFixed(3)} USD, ${over} calls over`;
}

test('128 streams exceed a hard limit of an organization in USD by at most one call', async ({ annotate }) => {
  const limit = CALLS * COST;
  const limitedOrg = async (): Promise<TestOrg> => {
    const made = await pricedOrg();
    await made.limit(apis(), { cost_usd: { hard_limit: limit } });
    return made;
  };
  const [org, admitted] = await floodInTime(limitedOrg, keyOf);
  await annotate(expectWithin(admitted, limit));
  for (const api of apis())
    await eventually(async () => Math.abs((await org.budget(api)).cost_usd.used - admitted * COST) < 1e-9, {
      what: 'the use in every process',
      withinMs: 30_000,
    });
});

test('128 streams exceed the budget of a key in USD by at most one call', async ({ annotate }) => {
  const org = await pricedOrg();
  const limit = CALLS * COST;
  const limitedKey = () =>
    LimitedKey.make(
      apis(),
      { models: ['claude-*'], budget: { resource: 'cost_usd', hard_limit: limit, period: 'day' } },
      { org },
    );
  const [, admitted] = await floodInTime(limitedKey, ({ raw }) => raw);
  await annotate(expectWithin(admitted, limit));
});

test('a process killed in mid-stream keeps nothing reserved, and what had landed stays counted', async () => {
  const org = await pricedOrg();
  await org.limit(apis(), { tokens: { hard_limit: 10_000 } });
  const [victim, survivor] = clientsOf(keyOf(org));
  if (victim === undefined || survivor === undefined) throw new Error('there are two processes');
  for (const client of [victim, survivor]) expect(await streamed(client)).toBe(true);
  const stream = victim.messages.stream({ ...params, max_tokens: 20_000, metadata: { user_id: 'open' } });
  stream.on('error', () => undefined);
  const ended = expect(stream.done()).rejects.toThrow(Anthropic.AnthropicError);
  await new Promise<void>((resolve) => {
    stream.once('text', () => {
      resolve();
    });
  });
  // The reservation of the open stream leaves no room for another call in either process.
  await eventually(async () => !(await streamed(survivor)), { what: 'a rejection beside the reservation' });
  processes[0]?.child.kill('SIGKILL');
  await ended;
  await eventually(() => streamed(survivor), { what: 'the room of the killed process', withinMs: 30_000 });
  processes = [await startApi(), ...processes.slice(1)];
  const [fresh] = apis();
  if (fresh === undefined) throw new Error('the new process is missing');
  await eventually(async () => (await org.budget(fresh)).tokens.used >= 3 * 190, {
    what: 'the use in the new process',
    withinMs: 30_000,
  });
  expect((await org.budget(fresh)).tokens.used % 190).toBe(0);
});
