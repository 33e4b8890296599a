// The gateway, for both APIs: the time that it adds to a call, end to end, with an upstream that answers at once;
// the whole pipeline records every call. It is compared with direct calls of two kinds: in
// alternation with it at the same concurrency on an otherwise idle machine, and beside it, from
// time to time, by the same client. Generator, upstream, log, worker and store share the cores with
// the gateway: the second kind subtracts what that alone makes slower, and says how much it is. The
// CPU time of each call, by process, tells a slower gateway from a busier machine.
//
// Connections that call without a pause use up two cores from ten connections on: their rows measure
// how many calls the machine makes at once, and with the number of connections the time that each call
// waits. Paced rows send at a fixed rate, so they measure what one call waits for.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { type Call, LARGE, STREAMING, STREAMS, WHOLE } from './gateway_calls.ts';
import { measureLimits } from './gateway_limits.ts';
import { Lane, type LaneTarget, requestHead } from './lane.ts';
import { cpuBetween, processTree } from './processes.ts';
import { percentile, thousands, type Section, atMost, type Measure, type ReportRow } from './report.ts';
import { laneTarget, type Target } from './target.ts';

const PORT = 18_431;
/** Settings of the service. */
export const IN_FRONT: Record<string, string> = {
  SERVICE_LLM_BASE_URL: `http://127.0.0.1:${PORT}/v1`,
  SERVICE_ANTHROPIC_BASE_URL: `http://127.0.0.1:${PORT}/v1`,
};

/** A row: a call at a number of connections, with the latency that may be added. */
interface Run {
  call: Call;
  connections: number;
  /** Calls a second on each connection; absent: each connection calls without a pause. */
  pace?: number;
  /** Percentile that the bar bounds. */
  p: number;
  /** Milliseconds; absent where none is promised. */
  bar?: number;
}

/** Calls a second on each connection of paced rows. */
const PACE = 25;

const RUNS: readonly Run[] = [
  ...WHOLE.flatMap((call): Run[] => [
    { call, connections: 1, p: 0.5, bar: 1 },
    { call, connections: 10, p: 0.5, bar: 4 },
    { call, connections: 16, p: 0.99, bar: 8 },
  ]),
  ...STREAMS.map((call): Run => ({ call, connections: 10, p: 0.5 })),
  ...WHOLE.map((call): Run => ({ call, connections: 16, pace: PACE, p: 0.99 })),
];
const TURNS = 8;
/** Calls of each kind before the first row: after fewer, compilers still use a good part of the CPU. */
const WARM_REQUESTS = 6000;
/** Milliseconds between two direct calls beside the gateway's. */
const BESIDE_MS = 2;

export interface GatewayBenchOptions {
  target: Target;
  seconds: number;
  progress: (line: string) => void;
}

interface Bench extends GatewayBenchOptions {
  upstream: ChildProcess;
}

const sentBy = (to: LaneTarget, { path, body, stream }: Call): Buffer =>
  requestHead(stream ? { ...to, headers: `${to.headers}User-Agent: ${STREAMING}\r\n` } : to, 'POST', path, body.length);

/**
 * Returns the milliseconds of each call. All connections call without a pause, or at a pace: then a
 * call that is due while the one before it on its connection is under way has begun when it was due.
 * @throws Error on an answer other than 200
 */
async function run(
  to: LaneTarget,
  call: Call,
  connections: number,
  until: { seconds: number; pace?: number | undefined } | { requests: number },
): Promise<number[]> {
  const head = sentBy(to, call);
  const times: number[] = [];
  const start = performance.now();
  const end = start + ('seconds' in until ? until.seconds * 1000 : Infinity);
  const most = 'requests' in until ? until.requests : Infinity;
  const every = 'pace' in until && until.pace !== undefined ? 1000 / until.pace : 0;
  const send = async (_: unknown, index: number) => {
    const lane = new Lane(to);
    let due = start + (every * index) / connections;
    while (performance.now() < end && times.length < most) {
      const early = due - performance.now();
      if (every > 0 && early > 0) await new Promise((resolve) => setTimeout(resolve, early));
      const began = every > 0 && early < 0 ? due : performance.now();
      const status = await lane.send(head, call.body);
      times.push(performance.now() - began);
      if (status !== 200) throw new Error(`an answer of ${status}`);
      due += every;
    }
    lane.close();
  };
  await Promise.all(Array.from({ length: connections }, send));
  return times;
}

/** Returns the milliseconds of each direct call, made from time to time until `ended` resolves. */
async function runBeside(to: LaneTarget, call: Call, ended: Promise<unknown>): Promise<number[]> {
  const head = sentBy(to, call);
  const times: number[] = [];
  const lane = new Lane(to);
  let isOver = false;
  const over = () => isOver;
  void ended.finally(() => (isOver = true)).catch(() => undefined);
  while (!over()) {
    await new Promise((resolve) => setTimeout(resolve, BESIDE_MS));
    const began = performance.now();
    await lane.send(head, call.body);
    times.push(performance.now() - began);
  }
  lane.close();
  return times;
}

/** Returns the CPU seconds that each process used while `work` ran, with the value of `work`. */
async function withCpu<T>(
  { target, upstream }: Bench,
  work: () => Promise<T>,
): Promise<{ value: T; cpu: Map<string, number> }> {
  const roots = [target.pid, upstream.pid].flatMap((pid) => (pid == null ? [] : [pid]));
  const look = () => roots.flatMap(processTree);
  const before = look();
  const own = process.cpuUsage();
  const value = await work();
  const { user, system } = process.cpuUsage(own);
  const cpu = cpuBetween(before, look());
  // The upstream is the only process without a part of the service.
  const upstreamCpu = cpu.get('other');
  cpu.delete('other');
  if (upstreamCpu !== undefined) cpu.set('upstream', upstreamCpu);
  return { value, cpu: cpu.set('generator', (user + system) / 1e6) };
}

export async function benchGateway(options: GatewayBenchOptions): Promise<Section> {
  const upstream = fork(new URL('./gateway_upstream.ts', import.meta.url), [String(PORT)]);
  try {
    await once(upstream, 'message');
    return await measured({ ...options, upstream });
  } finally {
    upstream.kill('SIGTERM');
  }
}

async function measured(bench: Bench): Promise<Section> {
  const { target, seconds, progress } = bench;
  const through = laneTarget(target);
  const direct = { host: '127.0.0.1', port: PORT, headers: 'Content-Type: application/json\r\n' };
  const each = Math.max(1, seconds / (RUNS.length * TURNS * 2));
  for (const call of [...WHOLE, ...STREAMS])
    for (const to of [direct, through]) await run(to, call, 4, { requests: WARM_REQUESTS });
  const rows: ReportRow[] = [];
  const data = [];
  for (const one of RUNS) {
    const { row, numbers } = await measureRun(bench, one, { through, direct }, each);
    rows.push(row);
    data.push(numbers);
  }
  const limits = await measureLimits(
    { target, seconds, progress },
    [...WHOLE, ...STREAMS].map((call) => ({ name: call.name, run: (to, ...how) => run(to, call, ...how) })),
    { name: LARGE.name, run: (to, ...how) => run(to, LARGE, ...how) },
  );
  const title = 'The gateway in front of a mock upstream, every call recorded';
  return { title, rows: [...rows, ...limits.rows], data };
}

const both = (of: (q: number) => number) => `p50 ${of(0.5).toFixed(2)} ms, p99 ${of(0.99).toFixed(2)} ms`;

async function measureRun(
  bench: Bench,
  { call, connections, pace, p, bar }: Run,
  { through, direct }: { through: LaneTarget; direct: LaneTarget },
  seconds: number,
) {
  const times = { direct: [] as number[], through: [] as number[], beside: [] as number[] };
  const cpu = new Map<string, number>();
  for (let turn = 0; turn < TURNS; turn++) {
    times.direct = times.direct.concat(await run(direct, call, connections, { seconds, pace }));
    const { value, cpu: used } = await withCpu(bench, () => {
      const running = run(through, call, connections, { seconds, pace });
      return Promise.all([running, runBeside(direct, call, running)]);
    });
    for (const [part, more] of used) cpu.set(part, (cpu.get(part) ?? 0) + more);
    times.through = times.through.concat(value[0]);
    times.beside = times.beside.concat(value[1]);
  }
  const added = (q: number, to: 'direct' | 'beside' = 'direct') =>
    percentile(times.through, q) - percentile(times[to], q);
  const plain = (of: readonly number[]) => both((q) => percentile(of, q));
  const cpuMs = (part: string) => (1000 * (cpu.get(part) ?? 0)) / times.through.length;
  const perCall = [...cpu.keys()].map((part) => `${part} ${cpuMs(part).toFixed(2)}`).join(', ');
  const note = `to direct calls beside it: ${both((q) => added(q, 'beside'))}; direct ${plain(times.direct)}; beside ${plain(times.beside)}; through ${plain(times.through)}; CPU ms a call: ${perCall}; n=${thousands(times.through.length)}`;
  const load = (loadavg()[0] ?? 0).toFixed(1);
  const paced = pace === undefined ? '' : `, each with ${pace} calls a second`;
  bench.progress(`  ${call.name}, ${connections}${paced}: added ${both(added)}; ${note}; load ${load}`);
  const measures = [0.5, 0.99].map((q): Measure => ({
    name: `p${q * 100}`,
    value: added(q),
    unit: 'ms',
    samples: times.through.length,
    ...(q === p && bar !== undefined ? { bar: atMost(bar) } : {}),
  }));
  if (cpu.has('api')) measures.push({ name: 'cpu', value: cpuMs('api'), unit: 'ms', samples: times.through.length });
  const row: ReportRow = {
    what: `${call.name}, added at ${connections} connection${connections === 1 ? '' : 's'}${paced}`,
    value: `${both(added)}${cpu.has('api') ? `; ${cpuMs('api').toFixed(2)} ms of CPU in the API process` : ''}`,
    ...(bar === undefined ? {} : { bar: `p${p * 100} < ${bar} ms` }),
    note: `${note}; load average ${load}`,
    measures,
  };
  const numbers = {
    api: call.name,
    connections,
    ...(pace === undefined ? {} : { pace }),
    added_p50: added(0.5),
    added_p99: added(0.99),
    beside_p50: added(0.5, 'beside'),
    beside_p99: added(0.99, 'beside'),
    cpu_ms: Object.fromEntries([...cpu.keys()].map((part) => [part, cpuMs(part)])),
    load: Number(load),
  };
  return { row, numbers };
}
