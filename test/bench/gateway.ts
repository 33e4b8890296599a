// The gateway, for both APIs: the time that it adds to a call, end to end, with an upstream that answers at once;
// the whole pipeline records every call. It is compared with direct calls of two kinds: in
// alternation with it at the same concurrency on an otherwise idle machine, and beside it, from
// time to time, by the same client. Generator, upstream, log, worker and store share the cores with
// the gateway: the second kind subtracts what that alone makes slower, and says how much it is.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { measureLimits } from './gateway_limits.ts';
import { Lane, type LaneTarget, requestHead } from './lane.ts';
import { percentile, thousands, type Section, atMost, type Measure } from './report.ts';
import { laneTarget, type Target } from './target.ts';

const PORT = 18_431;
/** Settings of the service. */
export const IN_FRONT: Record<string, string> = {
  SERVICE_LLM_BASE_URL: `http://127.0.0.1:${PORT}/v1`,
  SERVICE_ANTHROPIC_BASE_URL: `http://127.0.0.1:${PORT}/v1`,
};
/** Numbers of connections, with the latency that may be added at each. */
const RUNS = [
  { connections: 1, p: 0.5, bar: 1 },
  { connections: 10, p: 0.5, bar: 4 },
  { connections: 16, p: 0.99, bar: 8 },
];
const TURNS = 8;
const WARM_REQUESTS = 2000;
/** Milliseconds between two direct calls beside the gateway's. */
const BESIDE_MS = 2;
const SYSTEM = 'Answer in one sentence, and say what you are not sure of. '.repeat(8);
const QUESTION = { role: 'user', content: 'What is the capital of France, and since when? '.repeat(8) };

/** A call of one API. */
interface Api {
  name: string;
  path: string;
  body: Buffer;
}

const OPENAI: Api = {
  name: 'OpenAI',
  path: '/v1/chat/completions',
  body: Buffer.from(
    JSON.stringify({
      model: 'gpt-4o-mini',
      temperature: 0.2,
      messages: [{ role: 'system', content: SYSTEM }, QUESTION],
    }),
  ),
};
const ANTHROPIC: Api = {
  name: 'Anthropic',
  path: '/v1/messages',
  body: Buffer.from(
    JSON.stringify({ model: 'claude-sonnet-4-5', max_tokens: 1024, system: SYSTEM, messages: [QUESTION] }),
  ),
};
/** A call whose body has 10 KB. */
const LARGE: Api = {
  name: 'OpenAI with a prompt of 10 KB',
  path: OPENAI.path,
  body: Buffer.from(
    JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: SYSTEM.repeat(22) }, QUESTION] }),
  ),
};
const APIS = [OPENAI, ANTHROPIC];

export interface GatewayBenchOptions {
  target: Target;
  seconds: number;
  progress: (line: string) => void;
}

/**
 * Returns the milliseconds of each call, with all connections calling without a pause. @throws
 * Error on an answer other than 200
 */
async function run(
  to: LaneTarget,
  { path, body }: Api,
  connections: number,
  until: { seconds: number } | { requests: number },
): Promise<number[]> {
  const head = requestHead(to, 'POST', path, body.length);
  const times: number[] = [];
  const end = performance.now() + ('seconds' in until ? until.seconds * 1000 : Infinity);
  const most = 'requests' in until ? until.requests : Infinity;
  const call = async () => {
    const lane = new Lane(to);
    while (performance.now() < end && times.length < most) {
      const began = performance.now();
      const status = await lane.send(head, body);
      times.push(performance.now() - began);
      if (status !== 200) throw new Error(`an answer of ${status}`);
    }
    lane.close();
  };
  await Promise.all(Array.from({ length: connections }, call));
  return times;
}

/** Returns the milliseconds of each direct call, made from time to time until `ended` resolves. */
async function runBeside(to: LaneTarget, { path, body }: Api, ended: Promise<unknown>): Promise<number[]> {
  const head = requestHead(to, 'POST', path, body.length);
  const times: number[] = [];
  const lane = new Lane(to);
  let isOver = false;
  const over = () => isOver;
  void ended.finally(() => (isOver = true)).catch(() => undefined);
  while (!over()) {
    await new Promise((resolve) => setTimeout(resolve, BESIDE_MS));
    const began = performance.now();
    await lane.send(head, body);
    times.push(performance.now() - began);
  }
  lane.close();
  return times;
}

export async function benchGateway({ target, seconds, progress }: GatewayBenchOptions): Promise<Section> {
  const upstream = fork(new URL('./gateway_upstream.ts', import.meta.url), [String(PORT)]);
  try {
    await once(upstream, 'message');
    return await measured({ target, seconds, progress });
  } finally {
    upstream.kill('SIGTERM');
  }
}

async function measured({ target, seconds, progress }: GatewayBenchOptions): Promise<Section> {
  const through = laneTarget(target);
  const direct = { host: '127.0.0.1', port: PORT, headers: 'Content-Type: application/json\r\n' };
  const each = Math.max(1, seconds / (APIS.length * RUNS.length * TURNS * 2));
  for (const api of APIS) for (const to of [direct, through]) await run(to, api, 4, { requests: WARM_REQUESTS });
  const rows = [];
  const data = [];
  for (const { api, connections, p, bar } of APIS.flatMap((one) => RUNS.map((bars) => ({ api: one, ...bars })))) {
    const times = { direct: [] as number[], through: [] as number[], beside: [] as number[] };
    for (let turn = 0; turn < TURNS; turn++) {
      for (const time of await run(direct, api, connections, { seconds: each })) times.direct.push(time);
      const running = run(through, api, connections, { seconds: each });
      const [calls, beside] = await Promise.all([running, runBeside(direct, api, running)]);
      for (const time of calls) times.through.push(time);
      for (const time of beside) times.beside.push(time);
    }
    const added = (q: number, to: 'direct' | 'beside' = 'direct') =>
      percentile(times.through, q) - percentile(times[to], q);
    const both = (of: (q: number) => number) => `p50 ${of(0.5).toFixed(2)} ms, p99 ${of(0.99).toFixed(2)} ms`;
    const plain = (of: readonly number[]) => both((q) => percentile(of, q));
    const note = `to direct calls beside it: ${both((q) => added(q, 'beside'))}; direct ${plain(times.direct)}; beside ${plain(times.beside)}; through ${plain(times.through)}; n=${thousands(times.through.length)}`;
    const load = (loadavg()[0] ?? 0).toFixed(1);
    progress(`  ${api.name}, ${connections}: added ${both(added)}; ${note}; load ${load}`);
    rows.push({
      what: `${api.name}, added at ${connections} connection${connections === 1 ? '' : 's'}`,
      value: both(added),
      bar: `p${p * 100} < ${bar} ms`,
      note: `${note}; load average ${load}`,
      measures: [0.5, 0.99].map((q): Measure => ({
        name: `p${q * 100}`,
        value: added(q),
        unit: 'ms',
        samples: times.through.length,
        ...(q === p ? { bar: atMost(bar) } : {}),
      })),
    });
    data.push({
      api: api.name,
      connections,
      added_p50: added(0.5),
      added_p99: added(0.99),
      beside_p50: added(0.5, 'beside'),
      beside_p99: added(0.99, 'beside'),
      load: Number(load),
    });
  }
  const limits = await measureLimits(
    { target, seconds, progress },
    APIS.map((api) => ({ name: api.name, run: (to, ...how) => run(to, api, ...how) })),
    { name: LARGE.name, run: (to, ...how) => run(to, LARGE, ...how) },
  );
  const title = 'The gateway in front of a mock upstream, every call recorded';
  return { title, rows: [...rows, ...limits.rows], data };
}
