// The gateway: the time that it adds to a call, end to end, with an upstream that answers at once;
// the whole pipeline records every call. It is compared with direct calls of two kinds: in
// alternation with it at the same concurrency on an otherwise idle machine, and beside it, from
// time to time, by the same client. Generator, upstream, log, worker and store share the cores with
// the gateway: the second kind subtracts what that alone makes slower, and says how much it is.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { Lane, type LaneTarget, requestHead } from './lane.ts';
import { percentile, thousands, type Section, atMost, type Measure } from './report.ts';
import { laneTarget, type Target } from './target.ts';

const PORT = 18_431;
/** Settings of the service. */
export const IN_FRONT: Record<string, string> = { SERVICE_LLM_BASE_URL: `http://127.0.0.1:${PORT}/v1` };
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
const PATH = '/v1/chat/completions';
const BODY = Buffer.from(
  JSON.stringify({
    model: 'gpt-4o-mini',
    temperature: 0.2,
    messages: [
      { role: 'system', content: 'Answer in one sentence, and say what you are not sure of. '.repeat(8) },
      { role: 'user', content: 'What is the capital of France, and since when? '.repeat(8) },
    ],
  }),
);

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
  connections: number,
  until: { seconds: number } | { requests: number },
): Promise<number[]> {
  const head = requestHead(to, 'POST', PATH, BODY.length);
  const times: number[] = [];
  const end = performance.now() + ('seconds' in until ? until.seconds * 1000 : Infinity);
  const most = 'requests' in until ? until.requests : Infinity;
  const call = async () => {
    const lane = new Lane(to);
    while (performance.now() < end && times.length < most) {
      const began = performance.now();
      const status = await lane.send(head, BODY);
      times.push(performance.now() - began);
      if (status !== 200) throw new Error(`an answer of ${status}`);
    }
    lane.close();
  };
  await Promise.all(Array.from({ length: connections }, call));
  return times;
}

/** Returns the milliseconds of each direct call, made from time to time until `ended` resolves. */
async function runBeside(to: LaneTarget, ended: Promise<unknown>): Promise<number[]> {
  const head = requestHead(to, 'POST', PATH, BODY.length);
  const times: number[] = [];
  const lane = new Lane(to);
  let isOver = false;
  const over = () => isOver;
  void ended.finally(() => (isOver = true)).catch(() => undefined);
  while (!over()) {
    await new Promise((resolve) => setTimeout(resolve, BESIDE_MS));
    const began = performance.now();
    await lane.send(head, BODY);
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
  const each = Math.max(1, seconds / (RUNS.length * TURNS * 2));
  for (const to of [direct, through]) await run(to, 4, { requests: WARM_REQUESTS });
  const rows = [];
  const data = [];
  for (const { connections, p, bar } of RUNS) {
    const times = { direct: [] as number[], through: [] as number[], beside: [] as number[] };
    for (let turn = 0; turn < TURNS; turn++) {
      for (const time of await run(direct, connections, { seconds: each })) times.direct.push(time);
      const running = run(through, connections, { seconds: each });
      const [calls, beside] = await Promise.all([running, runBeside(direct, running)]);
      for (const time of calls) times.through.push(time);
      for (const time of beside) times.beside.push(time);
    }
    const added = (q: number, to: 'direct' | 'beside' = 'direct') =>
      percentile(times.through, q) - percentile(times[to], q);
    const both = (of: (q: number) => number) => `p50 ${of(0.5).toFixed(2)} ms, p99 ${of(0.99).toFixed(2)} ms`;
    const plain = (of: readonly number[]) => both((q) => percentile(of, q));
    const note = `to direct calls beside it: ${both((q) => added(q, 'beside'))}; direct ${plain(times.direct)}; beside ${plain(times.beside)}; through ${plain(times.through)}; n=${thousands(times.through.length)}`;
    const load = (loadavg()[0] ?? 0).toFixed(1);
    progress(`  ${connections}: added ${both(added)}; ${note}; load ${load}`);
    rows.push({
      what: `added at ${connections} connection${connections === 1 ? '' : 's'}`,
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
      connections,
      added_p50: added(0.5),
      added_p99: added(0.99),
      beside_p50: added(0.5, 'beside'),
      beside_p99: added(0.99, 'beside'),
      load: Number(load),
    });
  }
  return { title: 'The gateway in front of a mock upstream, every call recorded', rows, data };
}
