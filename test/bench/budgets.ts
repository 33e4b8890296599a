// Budgets: how far use exceeds a hard limit with many concurrent senders at one, two and three API
// processes, how soon the other processes reject too, and what the check costs a request.
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startNodeMain } from '../../ops/launch/process/node_main.ts';
import { loadSecrets } from '../../ops/launch/secrets.ts';
import { natsUrlOf } from './admission.ts';
import { Body, singleBody } from './bodies.ts';
import { Lane, requestHead } from './lane.ts';
import { cpuBetween, processTree } from './processes.ts';
import { ms, thousands, type ReportRow, type Section, atMost, type Measure, type Unit } from './report.ts';
import { laneTarget, type Target } from './target.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

const SENDERS = 64;
/** The use that the limit leaves, and the use of each request. */
const TOKENS = 1_000_000;
const REQUEST_TOKENS = 500;
/** Rejections after which a sender stops, so that a process that admits again is noticed. */
const REFUSALS = 20;
/** Far beyond what a run can use. */
const NO_LIMIT_IN_SIGHT = 1e14;
const WARM_MS = 3000;
/** Runs against a limit, for each number of processes. */
const RUNS = 3;
/** Runs with and without a limit alternate, so that both see the same machine. */
const TURNS = ['free', 'limited', 'limited', 'free', 'free', 'limited', 'limited', 'free'] as const;
const LAND_MS_MAX = 60_000;
const READY_MS_MAX = 30_000;
const STOP_MS_MAX = 15_000;
const API = path.resolve(import.meta.dirname, '../../api/main.ts');

export interface BudgetsBenchOptions {
  target: Target;
  vocabulary: Vocabulary;
  seconds: number;
  progress: (line: string) => void;
}

/** A sender's own connection and body. */
interface Sender {
  lane: Lane;
  head: Buffer;
  body: Body;
}

/** What all senders have sent. */
interface Sent {
  bodies: number;
  accepted: number;
}

interface Budget {
  tokens: { used: number; hard_limit: number | null };
}

/** Starts another API process of the measured service, named after its log. */
async function startApi(
  target: Target,
  dataDir: string,
  name: string,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const secrets = loadSecrets(dataDir);
  const main = await startNodeMain({
    name,
    entry: API,
    env: {
      ...process.env,
      SERVICE_DATA_DIR: dataDir,
      SERVICE_PORT: '0',
      SERVICE_NATS_URL: await natsUrlOf(dataDir),
      SERVICE_CLICKHOUSE_URL: target.clickhouseUrl ?? undefined,
      SERVICE_LOG_LEVEL: 'warn',
      SERVICE_ADMIN_TOKEN: secrets.admin_token,
      SERVICE_BOOTSTRAP_API_KEY: secrets.api_key,
      SERVICE_JWT_SECRET: secrets.jwt_secret,
      SERVICE_ENCRYPTION_KEY: secrets.encryption_key,
    },
    logFile: path.join(dataDir, `${name}.log`),
    signal: new AbortController().signal,
    readyMsMax: READY_MS_MAX,
    stopMsMax: STOP_MS_MAX,
  });
  return { url: `http://127.0.0.1:${main.port ?? 0}`, stop: () => main.stop() };
}

async function ask<T>({ url, org, key }: Target, method: string, where: string, body?: unknown): Promise<T> {
  const response = await fetch(url + where, {
    method,
    headers: { 'X-Org-Api-Key': key, 'X-Org-Id': org, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as { data: T };
  if (response.status !== 200) throw new Error(`${method} ${where}: ${response.status} ${JSON.stringify(answer)}`);
  return answer.data;
}

const putLimit = (target: Target, hard_limit: number | null): Promise<Budget> =>
  ask(target, 'PUT', `/orgs/${target.org}/budget`, { tokens: { hard_limit } });

/** Returns the use once nothing more lands. */
async function usedOf(target: Target, atLeast: number): Promise<number> {
  const deadline = performance.now() + LAND_MS_MAX;
  for (;;) {
    const { tokens } = await ask<Budget>(target, 'GET', '/v1/budgets');
    if (tokens.used >= atLeast) return tokens.used;
    if (performance.now() > deadline)
      throw new Error(`${thousands(tokens.used)} of ${thousands(atLeast)} tokens landed`);
    await pause(100);
  }
}

interface Overshoot {
  /** Tokens beyond the limit. */
  beyond: number;
  /** Milliseconds from the answer that reached the limit to the last 200 of any process. */
  last_ms: number;
  seconds: number;
}

/** Creates an organization without use and waits until every process knows it. */
async function freshOrg(targets: readonly Target[], adminToken: string, org: string): Promise<Target[]> {
  const [first] = targets;
  if (first === undefined) throw new Error('there is a process to make it in');
  const post = async <T>(where: string, body: unknown): Promise<T> => {
    const headers = { Authorization: `Bearer ${adminToken}`, 'Content-Type': 'application/json' };
    const response = await fetch(first.url + where, { method: 'POST', headers, body: JSON.stringify(body) });
    if (response.status !== 201) throw new Error(`POST ${where}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  const owner = { user_id: `u_${org}`, email: `${org}@example.com` };
  await post('/admin/orgs', { org_id: org, name: org, plan_name: 'enterprise', owner });
  const { raw_key } = await post<{ raw_key: string }>(`/admin/orgs/${org}/api-keys`, { name: 'bench', scopes: ['*'] });
  const own = targets.map((target) => ({ ...target, org, key: raw_key }));
  await putLimit({ ...first, org, key: raw_key }, TOKENS);
  // Records reach the other processes, and their accounts are read.
  await pause(2000);
  for (const target of own) await ask(target, 'GET', '/v1/budgets');
  return own;
}

/** Sends from all senders until each was rejected REFUSALS times. */
async function overshoot(targets: readonly Target[], vocabulary: Vocabulary, sent: Sent): Promise<Overshoot> {
  const senders = sendersTo(targets, vocabulary);
  let accepted = 0;
  let crossed = Infinity;
  let last = 0;
  const began = performance.now();
  await Promise.all(
    senders.map(async ({ lane, head, body }) => {
      for (let refusals = 0; refusals < REFUSALS;) {
        body.stamp(++sent.bodies);
        const status = await lane.send(head, body.bytes);
        if (status === 429) refusals++;
        else if (status !== 200) throw new Error(`an answer of ${status}`);
        else {
          last = performance.now();
          accepted++;
          if (accepted * REQUEST_TOKENS >= TOKENS) crossed = Math.min(crossed, last);
        }
      }
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  for (const { lane } of senders) lane.close();
  const [first] = targets;
  if (first === undefined) throw new Error('there is a process to ask');
  const used = await usedOf(first, accepted * REQUEST_TOKENS);
  return { beyond: used - TOKENS, last_ms: Math.max(0, last - crossed), seconds };
}

/** Pause after a 429, as in load.ts. */
const REFUSED_REST_MS = 100;

interface Rate {
  requests: number;
  seconds: number;
}

/** Sends one event a request, from all senders together. */
async function send(senders: readonly Sender[], forMs: number, sent: Sent): Promise<Rate> {
  const [began, until] = [performance.now(), performance.now() + forMs];
  let count = 0;
  await Promise.all(
    senders.map(async ({ lane, head, body }) => {
      while (performance.now() < until) {
        body.stamp(++sent.bodies);
        const status = await lane.send(head, body.bytes);
        if (status === 200) count++;
        // The organization is above its backlog share: the sender pauses, as an SDK does.
        else if (status === 429) await new Promise((resolve) => setTimeout(resolve, REFUSED_REST_MS));
        else throw new Error(`an answer of ${status}`);
      }
    }),
  );
  sent.accepted += count;
  return { requests: count, seconds: (performance.now() - began) / 1000 };
}

/** Returns a body whose use is the same for all bodies. */
function bodyOf(vocabulary: Vocabulary, index: number): Body {
  const random = seededRandom(index + 1);
  const event = JSON.parse(singleBody(vocabulary, random).bytes.toString('latin1')) as {
    response: Record<string, unknown>;
  };
  const usage = { prompt_tokens: REQUEST_TOKENS - 100, completion_tokens: 100, total_tokens: REQUEST_TOKENS };
  return new Body(JSON.stringify({ ...event, response: { ...event.response, usage } }));
}

function sendersTo(targets: readonly Target[], vocabulary: Vocabulary): Sender[] {
  return Array.from({ length: SENDERS }, (_, index) => {
    const target = targets[index % targets.length];
    if (target === undefined) throw new Error('there is a process to send to');
    const body = bodyOf(vocabulary, index);
    const to = laneTarget(target);
    return {
      lane: new Lane(to),
      head: requestHead(to, 'POST', `/orgs/${target.org}/ingest/chatcompletion`, body.bytes.length),
      body,
    };
  });
}

interface Turn extends Rate {
  /** CPU seconds of the process that received the requests. */
  cpu_s: number;
}

/** The maximum of several runs. */
const most = (name: string, unit: Unit, values: readonly number[], bar: number): Measure[] => [
  { name: `${name}, most`, value: Math.max(...values), unit, samples: values.length, bar: atMost(bar) },
];

/** Requests a second, and CPU seconds of the API for each. */
function rateAndCost(turns: readonly Turn[]): { per_s: number; cpu_s: number } {
  const sum = (of: (turn: Turn) => number): number => turns.reduce((total, turn) => total + of(turn), 0);
  const requests = sum((turn) => turn.requests);
  return { per_s: requests / sum((turn) => turn.seconds), cpu_s: sum((turn) => turn.cpu_s) / requests };
}

function costRow(what: string, turns: readonly Turn[]): ReportRow {
  const { per_s, cpu_s } = rateAndCost(turns);
  return {
    what,
    value: `${thousands(per_s)}/s, ${thousands(cpu_s * 1e6)} µs of CPU each`,
    measures: [
      { name: 'rate', value: per_s, unit: 'per_s' },
      { name: 'cpu', value: cpu_s * 1e6, unit: 'us' },
    ],
  };
}

export async function benchBudgets({ target, vocabulary, seconds, progress }: BudgetsBenchOptions): Promise<Section> {
  const { dataDir } = target;
  if (dataDir === null)
    throw new Error('budgets starts a second API process: it takes a service that it has started itself');
  const sent: Sent = { bodies: 0, accepted: 0 };
  const rows: ReportRow[] = [];
  const data: Record<string, unknown> = {};
  const more: { url: string; stop: () => Promise<void> }[] = [];
  try {
    for (const name of ['api-2', 'api-3']) more.push(await startApi(target, dataDir, name));
    const targets = [target, ...more.map(({ url }) => ({ ...target, url }))];
    const adminToken = loadSecrets(dataDir).admin_token;
    const crossings: Record<number, Overshoot[]> = {};
    for (const processes of [1, 2, 3]) {
      const warming = sendersTo(targets.slice(0, processes), vocabulary);
      await send(warming, WARM_MS, sent);
      for (const { lane } of warming) lane.close();
      const runs: Overshoot[] = (crossings[processes] = []);
      while (runs.length < RUNS) {
        progress(
          `budgets: 64 senders against a limit of 1,000,000 tokens, ${processes} of 3 processes, run ${runs.length + 1}`,
        );
        const org = `org_bench_${processes}_${runs.length}`;
        const fresh = await freshOrg(targets, adminToken, org);
        runs.push(await overshoot(fresh.slice(0, processes), vocabulary, sent));
      }
      rows.push({
        what: `beyond the limit, sent to ${processes} of 3 processes`,
        value: runs.map(({ beyond }) => thousands(beyond)).join(', ') + ' tokens',
        bar: `≤ ${thousands(TOKENS / 1000)} tokens`,
        note: `${SENDERS} senders, requests of ${REQUEST_TOKENS} tokens, ${runs.map(({ seconds: took }) => took.toFixed(1)).join(', ')} s`,
        measures: most(
          'tokens',
          'count',
          runs.map(({ beyond }) => beyond),
          TOKENS / 1000,
        ),
      });
      rows.push({
        what: 'the limit reached to the last request let in',
        value: `${runs.map(({ last_ms }) => ms(last_ms)).join(', ')} ms`,
        bar: '≤ 1 s',
        measures: most(
          'last',
          'ms',
          runs.map(({ last_ms }) => last_ms),
          1000,
        ),
      });
    }
    const one = sendersTo([target], vocabulary);
    const turns = { free: [] as Turn[], limited: [] as Turn[] };
    for (const kind of TURNS) {
      await putLimit(target, kind === 'free' ? null : NO_LIMIT_IN_SIGHT);
      // What the previous run sent must land before the next one begins.
      await usedOf(target, sent.accepted * REQUEST_TOKENS);
      await pause(500);
      progress(`budgets: single events, ${kind === 'free' ? 'no limit' : 'a hard limit'}`);
      const before = processTree(target.pid ?? 0);
      const rate = await send(one, (seconds * 1000) / TURNS.length, sent);
      const cpu = cpuBetween(before, processTree(target.pid ?? 0));
      turns[kind].push({ ...rate, cpu_s: cpu.get('api') ?? 0 });
    }
    for (const { lane } of one) lane.close();
    rows.push(costRow('single-event requests without a limit', turns.free), {
      ...costRow('single-event requests with a hard limit', turns.limited),
      note: 'told to two other processes that hear of them',
    });
    Object.assign(data, { crossings, turns });
  } finally {
    for (const { stop } of more) await stop();
  }
  return { title: 'Budgets', rows, data };
}
