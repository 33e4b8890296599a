// Hard limits across three API processes with 64 concurrent senders: the request that reaches a
// limit is the last one admitted, whichever process receives it, even if the decider is killed or
// paused.
import { type ChildProcess, fork } from 'node:child_process';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import type { Answer } from '../api/an_api.ts';
import { type ApiAddress, code, lateAnswers, type SendOptions, TestOrg } from './a_budget.ts';

vi.setConfig({ testTimeout: 120_000 });

const SENDERS = 64;
const TOKENS = 100;

interface ApiProcess {
  child: ChildProcess;
  api: ApiAddress;
}

let database: TestDatabase;
let nats: TestNats;
/**
 * Started by the last test. Without a worker nothing lands, so a process knows what the others
 * admitted only from their announcements.
 */
let worker: TestWorker | null = null;
let nc: NatsConnection;
let processes: ApiProcess[];
/** Use that must have landed at the end, by organization. */
const reached: { org: TestOrg; used: number }[] = [];
/** By organization: the process that was last asked to decide, and the process that asked it. */
const asked = new Map<string, { home: string; asker: string }>();
/** By organization: every process that was asked to decide. */
const homes = new Map<string, Set<string>>();

async function startApi(): Promise<ApiProcess> {
  const child = fork(new URL('../../support/api_worker.ts', import.meta.url), [], {
    env: { ...process.env, TEST_NATS_URL: nats.url, TEST_CLICKHOUSE_URL: database.url },
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

const apis = (): ApiAddress[] => processes.map(({ api }) => api);

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  processes = await Promise.all([startApi(), startApi(), startApi()]);
  nc = await connectNats({ url: nats.url, name: 'test', waitMs: 3000 });
  nc.subscribe('usage.ask.*', {
    callback: (_error, received) => {
      const { asker, asks } = JSON.parse(received.string()) as { asker: string; asks: [number, string][] };
      const home = received.subject.slice('usage.ask.'.length);
      for (const [, org] of asks) {
        asked.set(org, { home, asker });
        homes.set(org, (homes.get(org) ?? new Set()).add(home));
      }
    },
  });
}, 90_000);

afterAll(async () => {
  for (const { child } of processes) child.kill('SIGKILL');
  worker?.kill('SIGKILL');
  await worker?.exited;
  await nc.close();
  await nats.remove();
  await database.drop();
});

interface Flow {
  accepted: number;
  refused: Answer[];
  /** Requests without an answer, because the process was killed or not yet started. */
  unanswered: number;
  /**
   * Requests answered with 502: on a busy machine NATS did not confirm them in time, but they may
   * be stored.
   */
  unconfirmed: number;
}

/** Sends from all senders, each to one process after the other, until every sender is rejected. */
async function flood(
  org: TestOrg,
  to: () => readonly ApiAddress[],
  flow: Flow,
  options: SendOptions = {},
): Promise<Flow> {
  await Promise.all(
    Array.from({ length: SENDERS }, async (_, sender) => {
      for (let turn = sender; ; turn++) {
        const live = to();
        const api = live[turn % live.length];
        if (api === undefined) throw new Error('there is a process');
        const answer = await org.send(api, TOKENS, options).catch(() => null);
        if (answer === null || answer.status === 502) {
          if (answer === null) flow.unanswered++;
          else flow.unconfirmed++;
          await new Promise((resolve) => setTimeout(resolve, 20));
        } else if (answer.status === 200) flow.accepted++;
        else {
          flow.refused.push(answer);
          return;
        }
      }
    }),
  );
  return flow;
}

const noFlow = (): Flow => ({ accepted: 0, refused: [], unanswered: 0, unconfirmed: 0 });

/**
 * Expects exactly `requests` admitted requests, of which some may be unconfirmed. On a machine so
 * busy that the decider answers too late, a second process decides too and may admit up to SENDERS
 * requests more.
 */
function expectAccepted(
  org: TestOrg,
  { accepted, unanswered, unconfirmed }: Flow,
  requests: number,
  deciding = 1,
): void {
  expect(unanswered).toBe(0);
  const beside = (homes.get(org.id)?.size ?? 0) > deciding ? SENDERS : 0;
  expect(accepted).toBeLessThanOrEqual(requests + beside);
  expect(accepted + unconfirmed).toBeGreaterThanOrEqual(requests);
}

/**
 * Returns the decider of an organization whose use is just below its hard limit. A request of 0
 * tokens to each process makes that process ask the decider.
 */
async function homeOf(org: TestOrg): Promise<ApiProcess> {
  const ids = new Map<string, ApiProcess>();
  let home = '';
  for (const one of processes) {
    asked.delete(org.id);
    await eventually(
      async () => {
        expect((await org.send(one.api, 0)).status).toBe(200);
        return asked.has(org.id);
      },
      { what: 'a question near the limit' },
    );
    const question = asked.get(org.id);
    ids.set(question?.asker ?? '', one);
    home = question?.home ?? '';
  }
  const found = ids.get(home);
  if (found === undefined) throw new Error('the home is one of the processes');
  return found;
}

test('of 64 senders at three processes the request that reaches the limit is the last, and all reject from then on', async () => {
  for (const limit of [40_000, 5_000]) {
    const org = await TestOrg.make(apis());
    await org.limit(apis(), { tokens: { hard_limit: limit } });
    const flow = await flood(org, apis, noFlow());
    expectAccepted(org, flow, limit / TOKENS);
    expect(new Set(flow.refused.map(code))).toEqual(new Set(['429 rate_limited']));
    for (const { headers } of flow.refused) expect(headers.get('X-Quota-Tokens-Status')).toBe('hard_exceeded');
    for (const api of apis()) expect(code(await org.send(api, 0))).toBe('429 rate_limited');
    if (flow.unconfirmed === 0) reached.push({ org, used: flow.accepted * TOKENS });
  }
});

test("an agent's own limit holds as exactly, and its use brings the organization's nearer for the others", async () => {
  const org = await TestOrg.make(apis());
  const [first] = apis();
  if (first === undefined) throw new Error('there is a process');
  await org.limitAgent(first, 'small', { hard_limit: 3000 });
  await org.limit(apis(), { tokens: { hard_limit: 8000 } });
  // Wait until every process counts the agent separately.
  for (const api of apis())
    await eventually(async () => (await org.call(api, 'GET', `/orgs/${org.id}/budget/agents`)).text.includes('small'), {
      what: 'it',
    });
  const [small, others] = [noFlow(), noFlow()];
  await Promise.all([flood(org, apis, small, { agent_id: 'small' }), flood(org, apis, others, { agent_id: 'big' })]);
  expectAccepted(org, small, 30);
  const both = {
    ...others,
    accepted: small.accepted + others.accepted,
    unconfirmed: small.unconfirmed + others.unconfirmed,
  };
  expectAccepted(org, both, 80);
});

test('beyond the limit an overage budget is spent up to the request that reaches it, by all processes together', async () => {
  // 100 input tokens cost 0.00025 USD.
  const org = await TestOrg.make(apis(), { overage_budget_usd: 0.01 });
  await org.limit(apis(), { tokens: { hard_limit: 5000 } });
  const flow = await flood(org, apis, noFlow());
  expect(new Set(flow.refused.map(code))).toEqual(new Set(['402 payment_required']));
  expectAccepted(org, flow, 50 + 40);
});

test('while the deciding process is paused the others admit up to the limit, and it admits nothing when it wakes', async () => {
  const limit = 30_000;
  const org = await TestOrg.make(apis());
  const [first] = apis();
  if (first === undefined) throw new Error('there is a process');
  await org.limit(apis(), { tokens: { hard_limit: limit / 2 + 100 } });
  expect((await org.send(first, limit / 2)).status).toBe(200);
  const home = await homeOf(org);
  await org.limit(apis(), { tokens: { hard_limit: limit } });
  const before = await lateAnswers(apis().filter((api) => api !== home.api));
  home.child.kill('SIGSTOP');
  const flow = await flood(org, () => apis().filter((api) => api !== home.api), noFlow());
  expect(await lateAnswers(apis().filter((api) => api !== home.api))).toBeGreaterThan(before);
  // The paused decider, and the process that replaces it.
  expectAccepted(org, flow, limit / 2 / TOKENS, 2);
  // The paused process receives both when it wakes: the announcements of the others, and these
  // requests.
  const late = Promise.all(Array.from({ length: 8 }, () => org.send(home.api, TOKENS)));
  home.child.kill('SIGCONT');
  const room = flow.unconfirmed;
  expect((await late).filter(({ status }) => status === 200).length).toBeLessThanOrEqual(room);
});

test('when the deciding process is killed no request hangs, nothing is lost, and the limit is reached', async () => {
  const limit = 40_000;
  const org = await TestOrg.make(apis());
  const [first] = apis();
  if (first === undefined) throw new Error('there is a process');
  await org.limit(apis(), { tokens: { hard_limit: limit / 2 + 100 } });
  expect((await org.send(first, limit / 2)).status).toBe(200);
  const home = await homeOf(org);
  await org.limit(apis(), { tokens: { hard_limit: limit } });
  // The worker starts after the limit is set, so it knows the limit from its start. Use that lands
  // before a worker knows the limit reaches the accounts a second late.
  worker = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url });
  await worker.ready;
  const stored = async (): Promise<number> =>
    Number(await database.run(`SELECT sum(input_tokens + output_tokens) FROM usage_events WHERE org_id = '${org.id}'`));
  // While a process reads the first landings of a new worker, it counts landed use on top of
  // reserved use. Wait until every process is past that.
  await eventually(async () => (await stored()) === limit / 2, { what: 'what was sent before, landed' });
  await eventually(
    async () => {
      const used = await Promise.all(apis().map(async (api) => (await org.budget(api)).tokens.used));
      const probes = await Promise.all(apis().map(async (api) => (await org.send(api, 0)).status));
      return used.every((one) => one === limit / 2) && probes.every((status) => status === 200);
    },
    { what: 'accounts that agree' },
  );
  let live = apis();
  const flow = noFlow();
  const flood1 = flood(org, () => live, flow);
  await eventually(() => flow.accepted >= 120, { what: 'the flow near the limit' });
  home.child.kill('SIGKILL');
  live = live.filter((api) => api !== home.api);
  await flood1;
  processes = [...processes.filter((one) => one !== home), await startApi()];
  // Use that the killed process had reserved and not stored is released, so the others admit that
  // much later.
  await eventually(
    async () => {
      for (const api of apis()) if ((await org.send(api, TOKENS)).status === 200) flow.accepted++;
      return (await stored()) >= limit;
    },
    { what: 'the limit reached' },
  );
  for (const api of apis()) expect(code(await org.send(api, 0))).toBe('429 rate_limited');
  const [used, known] = [await stored(), limit / 2 + flow.accepted * TOKENS];
  expect(used).toBeGreaterThanOrEqual(known);
  expect(used - known).toBeLessThanOrEqual((flow.unanswered + flow.unconfirmed) * TOKENS);
  // Reservations that the killed process had in flight expire after three seconds; use that lands
  // later than that exceeds the limit.
  expect(used).toBeLessThanOrEqual(limit + (flow.unanswered + flow.unconfirmed) * TOKENS);
  for (const { status } of flow.refused) expect(status).toBe(429);
  const [any] = apis();
  if (any === undefined) throw new Error('there is a process');
  for (const { org: other, used: all } of reached) {
    await other.landed(any, all);
    expect((await other.budget(any)).tokens.used).toBe(all);
  }
});
