// The gateway in three API processes: a hard limit applies to all of them together, whether calls
// are streamed, whole or dropped in the middle. A process that is killed loses only the records of
// its latest answers.
import { type ChildProcess, fork } from 'node:child_process';
import { Agent, request } from 'node:http';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { type ModelBehaviour, type ModelServer, startModelServer } from '../../support/model_server.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { type ApiAddress, TestOrg } from '../budgets/a_budget.ts';

const CALLERS = 64;
/** Tokens of a call that is answered whole; the gateway reserves a little more. */
const TOKENS = 100;
const ANSWER_TOKENS = 95;

interface ApiProcess {
  child: ChildProcess;
  api: ApiAddress;
}

let database: TestDatabase;
let nats: TestNats;
let upstream: ModelServer;
let worker: TestWorker;
let processes: ApiProcess[];
let nc: NatsConnection;
/** By organization: every process that was asked to decide near a limit. */
const homes = new Map<string, Set<string>>();
const agent = new Agent({ keepAlive: true });

async function startApi(): Promise<ApiProcess> {
  const child = fork(new URL('../../support/api_worker.ts', import.meta.url), [], {
    env: { ...process.env, TEST_NATS_URL: nats.url, TEST_CLICKHOUSE_URL: database.url, TEST_LLM_URL: upstream.url },
  });
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

/** Answers as the request asks: whole, streamed, or with a stream that does not end. */
const model: ModelBehaviour = (res, { body }) => {
  const { stream, user } = JSON.parse(body.toString()) as { stream?: boolean; user?: string };
  const usage = { prompt_tokens: TOKENS - ANSWER_TOKENS, completion_tokens: ANSWER_TOKENS, total_tokens: TOKENS };
  const of = (more: object) => JSON.stringify({ id: 'chatcmpl-1', model: 'gpt-4o-mini', ...more });
  if (stream !== true) {
    const message = { role: 'assistant', content: 'Yes.' };
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(of({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage }));
    return;
  }
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.write(`data: ${of({ choices: [{ index: 0, delta: { role: 'assistant', content: 'Yes, and' } }] })}\n\n`);
  if (user !== 'open') res.end(`data: ${of({ choices: [], usage })}\n\ndata: [DONE]\n\n`);
};

beforeAll(async () => {
  [database, nats, upstream] = await Promise.all([createTestDatabase(), startTestNats(), startModelServer()]);
  upstream.behave(model);
  const client = createClickHouse({ url: database.url });
  await migrate(client, {});
  await client.close();
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url, more: { SERVICE_TRACE_GRACE_MS: '50' } });
  processes = await Promise.all([startApi(), startApi(), startApi()]);
  await worker.ready;
  nc = await connectNats({ url: nats.url, name: 'test', waitMs: 3000 });
  nc.subscribe('usage.ask.*', {
    callback: (_error, received) => {
      const { asks } = JSON.parse(received.string()) as { asks: [number, string][] };
      for (const [, org] of asks) homes.set(org, (homes.get(org) ?? new Set()).add(received.subject));
    },
  });
});

afterAll(async () => {
  agent.destroy();
  await nc.close();
  for (const { child } of processes) child.kill('SIGKILL');
  worker.kill('SIGKILL');
  await worker.exited;
  await upstream.close();
  await nats.remove();
  await database.drop();
});

const apis = (): ApiAddress[] => processes.map(({ api }) => api);

type Kind = 'whole' | 'streamed' | 'dropped' | 'open';
const KINDS: readonly Kind[] = ['whole', 'streamed', 'dropped'];

interface CallOptions {
  kind?: Kind;
  max_tokens?: number;
  trace_id?: string;
}

let questions = 0;

/**
 * Calls the model. Resolves with the status once the answer is complete (for an endless stream:
 * once it has begun), or with null if there is no answer.
 */
function ask(
  org: TestOrg,
  api: ApiAddress,
  { kind = 'whole', max_tokens = ANSWER_TOKENS, trace_id }: CallOptions = {},
) {
  const { url, headers } = org.request(api, '/v1/chat/completions');
  const content = `question ${++questions}`;
  const body = { model: 'gpt-4o-mini', messages: [{ role: 'user', content }], max_tokens, stream: kind !== 'whole' };
  const endless = kind === 'dropped' || kind === 'open';
  return new Promise<number | null>((resolve) => {
    const own = {
      'Content-Type': 'application/json',
      ...(trace_id === undefined ? {} : { 'X-Service-Trace-Id': trace_id }),
    };
    const sent = request(url, { method: 'POST', agent, headers: { ...headers, ...own } }, (res) => {
      const status = res.statusCode ?? 0;
      res.on('data', () => {
        if (endless && status === 200) resolve(status);
        if (kind === 'dropped' && status === 200) sent.destroy();
      });
      res.on('end', () => {
        resolve(status);
      });
      res.on('error', () => {
        resolve(null);
      });
    });
    sent.on('error', () => {
      resolve(null);
    });
    sent.end(JSON.stringify({ ...body, ...(endless ? { user: 'open' } : {}) }));
  });
}

const spans = async (org: TestOrg): Promise<number> =>
  Number(await database.run(`SELECT count() FROM spans WHERE org_id = '${org.id}'`));
const stored = async (org: TestOrg): Promise<number> =>
  Number(await database.run(`SELECT sum(input_tokens + output_tokens) FROM usage_events WHERE org_id = '${org.id}'`));

test('64 callers at three processes reach a hard limit together, and unused reservations are released', async () => {
  const limit = 20_000;
  const org = await TestOrg.make(apis());
  await org.limit(apis(), { tokens: { hard_limit: limit } });
  let letIn = 0;
  const call = async (turn: number, kind: Kind): Promise<boolean> => {
    const status = await ask(org, apis()[turn % 3] ?? { url: '' }, { kind });
    expect([200, 429]).toContain(status);
    if (status === 200) letIn++;
    return status === 200;
  };
  const caller = async (turn: number): Promise<void> => {
    while (await call(turn, KINDS[(turn + Math.floor(turn / 3)) % KINDS.length] ?? 'whole')) turn++;
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, first) => caller(first)));
  // Callers were rejected because of the others' reservations; a single caller uses up the rest.
  await eventually(
    async () => {
      for (let turn = 0; turn < 3; turn++) await call(turn, 'whole');
      return (await stored(org)) >= limit;
    },
    { what: 'the limit reached' },
  );
  await eventually(async () => (await spans(org)) === letIn, { what: 'all that was let in, landed' });
  let used = await stored(org);
  // On a machine so busy that the decider answers too late, a second process decides too and may
  // admit calls beyond the limit.
  const asked = homes.get(org.id)?.size ?? 0;
  expect(asked).toBeGreaterThan(0);
  expect(used).toBeLessThan(limit + TOKENS + (asked > 1 ? CALLERS * TOKENS : 0));
  // No process holds a reservation any more: it admits a call one token below the limit, and
  // rejects a call at the limit.
  for (let turn = 0; turn < 3; turn++) {
    await org.limit(apis(), { tokens: { hard_limit: used } });
    for (const api of apis())
      await eventually(async () => (await ask(org, api)) === 429, { what: 'a refusal at the limit' });
    await org.limit(apis(), { tokens: { hard_limit: used + 1 } });
    await eventually(() => call(turn, 'whole'), { what: 'a call below the limit' });
    used += TOKENS;
    await eventually(async () => (await stored(org)) === used, { what: 'its use, landed' });
  }
  for (const api of apis()) expect((await org.budget(api)).tokens.used).toBe(used);
});

test('a process killed under load loses only its latest answers; its reservations are released, and others continue', async () => {
  const [busy, limited] = [await TestOrg.make(apis()), await TestOrg.make(apis())];
  const [victim, other] = processes;
  if (victim === undefined || other === undefined) throw new Error('there are processes');
  await limited.limit(apis(), { tokens: { hard_limit: 1000 } });
  expect(await ask(limited, victim.api, { kind: 'open', max_tokens: 2000 })).toBe(200);
  expect(await ask(limited, other.api)).toBe(429);

  /** Trace ids by process, in the order of their answers. */
  const answered = new Map<ApiProcess, string[]>([victim, other].map((one) => [one, []]));
  let killed = false;
  let unanswered = 0;
  const caller = async (one: ApiProcess, index: number): Promise<void> => {
    for (let turn = 0; !killed || turn % 50 !== 0; turn++) {
      const trace_id = `t-${processes.indexOf(one)}-${index}-${turn}`;
      const status = await ask(busy, one.api, { kind: turn % 2 === 0 ? 'whole' : 'streamed', trace_id });
      if (status === 200) answered.get(one)?.push(trace_id);
      else {
        expect([one, status]).toEqual([victim, null]);
        unanswered++;
        return;
      }
    }
  };
  const callers = 8;
  const load = Promise.all(
    [victim, other].flatMap((one) => Array.from({ length: callers }, (_, index) => caller(one, index))),
  );
  await eventually(() => [...answered.values()].every(({ length }) => length >= 200), { what: 'calls at both' });
  victim.child.kill('SIGKILL');
  killed = true;
  await load;
  expect(unanswered).toBe(callers);
  // The reservation of the killed process is released after some seconds; until then the others
  // reject because of it.
  await eventually(async () => (await ask(limited, other.api)) === 200, { what: 'the room of the killed process' });

  const landed = async (): Promise<Set<string>> =>
    new Set((await database.run(`SELECT trace_id FROM spans WHERE org_id = '${busy.id}'`)).trim().split('\n'));
  const all = answered.get(other) ?? [];
  await eventually(async () => (await landed()).isSupersetOf(new Set(all)), {
    what: "all of the other's calls, landed",
  });
  const sent = answered.get(victim) ?? [];
  let there = new Set<string>();
  // Records enter the ingest log in the order of the answers, and concurrent callers see nearly
  // that order: only the latest records are lost.
  await eventually(
    async () => {
      there = await landed();
      const last = sent.findLastIndex((trace_id) => there.has(trace_id));
      return last >= 0 && sent.slice(0, Math.max(0, last - callers)).every((trace_id) => there.has(trace_id));
    },
    { what: 'all that the killed process had put into the log' },
  );
  // Besides the answered calls, at most the calls that were in flight at the killed process have
  // landed.
  const known = new Set([...sent, ...all]);
  expect(there.difference(known).size).toBeLessThanOrEqual(unanswered);
});
