// Sustained ingest from HTTP to queryable: events a second sent and landed, the lag of landing over
// time, and the resources of each process.
import { availableParallelism } from 'node:os';
import { BATCH_EVENTS, batchBody, singleBody, type Body, type Shape } from './bodies.ts';
import { Load } from './load.ts';
import { cpuBetween, describeCpu, describeMemory, processTree, memoryOf, type ProcessUse } from './processes.ts';
import {
  atLeast,
  atMost,
  mebibytes,
  p50p99,
  percentile,
  quantiles,
  single,
  slope,
  thousands,
  type Section,
} from './report.ts';
import { landedRows, type RunSql } from './store.ts';
import { laneTarget, type Target } from './target.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

const BATCH_BODIES = 128;
const SINGLE_BODIES = 4096;
const BATCH_LANES = 8;
const SINGLE_LANES = 64;
const SAMPLE_MS = 1000;
const PRINT_EVERY = 5;
const DRAIN_MS_MAX = 180_000;
/** Each look counts the spans, which takes the store some milliseconds. */
const DRAIN_POLL_MS = 200;
/** The first part of a run fills caches and buffers: the growth of the lag is measured after it. */
const WARM_FRACTION = 0.25;
/**
 * The lag counts as growing above this share of the rate, once it exceeds a second's worth of
 * events.
 */
const GROWTH_MAX = 0.01;
const SEARCHABLE_S_MAX = 10;
/** Bar of the CPU time of an event in a batch, in µs, merges included, in steady state. */
const CPU_US_MAX = 95;
const LOADED_BYTES_MAX = 2 * 1024 ** 3;

export interface Sample {
  at_s: number;
  acknowledged: number;
  landed: number;
  lag: number;
  waiting: number;
  memory_bytes: number;
}

export interface RunResult {
  seconds: number;
  acknowledged: number;
  refused: number;
  errors: number;
  sent_per_s: number;
  /** Events landed a second while the load ran. */
  landed_per_s: number;
  /** All acknowledged events divided by the time until the last of them could be queried. */
  to_queryable_per_s: number;
  lag_at_end: number;
  lag_growth_per_s: number;
  lag_max: number;
  drain_s: number;
  texts_waiting_at_end: number;
  texts_drain_s: number;
  cpu_s: Record<string, number>;
  generator_cpu_s: number;
  memory_max_bytes: number;
  memory: string;
  latency_p50_ms: number;
  latency_p99_ms: number;
  latencies: number[];
  samples: Sample[];
}

export interface RunOptions {
  target: Target;
  runSql: RunSql;
  /** Returns what the processes of the service use; those of the target's pid if absent. */
  tree?: () => ProcessUse[];
  /** Ingest format of the bodies. */
  format: string;
  bodies: readonly Body[];
  bodyEvents: number;
  lanes: number;
  rate: number;
  seconds: number;
  progress: (line: string) => void;
}

const until = async (deadline: number, done: () => Promise<boolean>): Promise<boolean> => {
  while (!(await done())) {
    if (performance.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
  }
  return true;
};

/** Runs a load for some seconds, then waits until all of it has landed. */
export async function runLoad(options: RunOptions): Promise<RunResult> {
  const { target, runSql, seconds, progress } = options;
  const load = new Load({
    target: laneTarget(target),
    path: `/orgs/${target.org}/ingest/${options.format}`,
    bodies: options.bodies,
    bodyEvents: options.bodyEvents,
    lanes: options.lanes,
    rate: options.rate,
  });
  const tree = options.tree ?? (() => (target.pid === null ? [] : processTree(target.pid)));
  const before = await landedRows(runSql);
  const [cpuBefore, ownBefore, began] = [tree(), process.cpuUsage(), performance.now()];
  const samples: Sample[] = [];
  let memoryText = '';
  load.start();
  for (let tick = 1; tick <= seconds; tick += 1) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, began + tick * SAMPLE_MS - performance.now())));
    const acknowledged = load.acknowledged;
    const now = await landedRows(runSql);
    const use = tree();
    const landed = now.spans - before.spans;
    const sample = {
      at_s: (performance.now() - began) / 1000,
      acknowledged,
      landed,
      lag: acknowledged - landed,
      waiting: now.waiting,
      memory_bytes: memoryOf(use),
    };
    if (sample.memory_bytes >= Math.max(0, ...samples.map(({ memory_bytes }) => memory_bytes)))
      memoryText = describeMemory(use);
    samples.push(sample);
    if (tick % PRINT_EVERY === 0)
      progress(
        `  ${String(tick).padStart(4)} s  sent ${thousands(acknowledged)}  lag ${thousands(sample.lag)} events  texts waiting ${thousands(sample.waiting)}  memory ${mebibytes(sample.memory_bytes)}`,
      );
  }
  await load.stop();
  const loadS = (performance.now() - began) / 1000;
  const last = samples.at(-1);
  const deadline = performance.now() + DRAIN_MS_MAX;
  await until(deadline, async () => (await landedRows(runSql)).spans - before.spans >= load.acknowledged);
  const drainedS = (performance.now() - began) / 1000;
  const used = cpuBetween(cpuBefore, tree());
  const own = process.cpuUsage(ownBefore);
  await until(deadline, async () => (await landedRows(runSql)).waiting === 0);
  const settled = samples.filter(({ at_s }) => at_s >= seconds * WARM_FRACTION);
  return {
    seconds: loadS,
    acknowledged: load.acknowledged,
    refused: load.refused,
    errors: load.errors,
    sent_per_s: load.acknowledged / loadS,
    landed_per_s: (last?.landed ?? 0) / (last?.at_s ?? NaN),
    to_queryable_per_s: load.acknowledged / drainedS,
    lag_at_end: last?.lag ?? NaN,
    lag_growth_per_s: slope(settled.map(({ at_s, lag }) => [at_s, lag])),
    lag_max: Math.max(...samples.map(({ lag }) => lag)),
    drain_s: drainedS - loadS,
    texts_waiting_at_end: last?.waiting ?? NaN,
    texts_drain_s: (performance.now() - began) / 1000 - loadS,
    cpu_s: Object.fromEntries(used),
    generator_cpu_s: (own.user + own.system) / 1e6,
    memory_max_bytes: Math.max(...samples.map(({ memory_bytes }) => memory_bytes)),
    memory: memoryText,
    latency_p50_ms: percentile(load.latencies_ms, 0.5),
    latency_p99_ms: percentile(load.latencies_ms, 0.99),
    latencies: load.latencies_ms,
    samples,
  };
}

/** @param promised events a second */
function rowsOf(result: RunResult, promised: number, unit: string, cpuUsMax?: number): Section['rows'] {
  const bar = `≥ ${thousands(promised)}/s`;
  const growing = result.lag_growth_per_s > GROWTH_MAX * result.sent_per_s && result.lag_at_end > result.sent_per_s;
  const cores = availableParallelism();
  const microseconds =
    (Object.values(result.cpu_s).reduce((sum, used) => sum + used, result.generator_cpu_s) / result.acknowledged) * 1e6;
  const quarter = (part: number): string =>
    thousands(
      result.samples[Math.min(result.samples.length - 1, Math.floor(result.samples.length * part))]?.lag ?? NaN,
    );
  return [
    {
      what: `${unit} acknowledged`,
      value: `${thousands(result.sent_per_s)}/s`,
      bar,
      note: `${thousands(result.acknowledged)} in ${result.seconds.toFixed(0)} s; ${result.refused} refused, ${result.errors} errors`,
      measures: single(result.sent_per_s, 'per_s', atLeast(promised)),
    },
    {
      what: 'landed, until the last is queryable',
      value: `${thousands(result.to_queryable_per_s)}/s`,
      bar,
      note: `drained ${result.drain_s.toFixed(1)} s after the end`,
      measures: single(result.to_queryable_per_s, 'per_s', atLeast(promised)),
    },
    {
      what: 'lag',
      value: growing ? `grows by ${thousands(result.lag_growth_per_s)}/s` : 'does not grow',
      bar: 'does not grow',
      note: `events at 25, 50, 75, 100 %: ${[0.25, 0.5, 0.75, 1].map(quarter).join(', ')}; most ${thousands(result.lag_max)}`,
      measures: [
        { name: 'growth', value: result.lag_growth_per_s, unit: 'per_s' },
        { name: 'most', value: result.lag_max, unit: 'count' },
      ],
    },
    {
      what: 'texts waiting to be searchable',
      value: thousands(result.texts_waiting_at_end),
      bar: '≤ 10 s',
      note: `all searchable ${result.texts_drain_s.toFixed(1)} s after the end`,
      measures: [
        { name: 'all searchable after', value: result.texts_drain_s, unit: 's', bar: atMost(SEARCHABLE_S_MAX) },
      ],
    },
    { what: 'time to the acknowledgement', value: quantiles(result.latencies), measures: p50p99(result.latencies) },
    {
      what: 'CPU time an event',
      value: `${Math.round(microseconds)} µs`,
      ...(cpuUsMax === undefined ? {} : { bar: `≤ ${cpuUsMax} µs` }),
      note: `${describeCpu(new Map(Object.entries(result.cpu_s)))}, load generator ${result.generator_cpu_s.toFixed(1)} s; all of ${cores} cores would carry ${thousands((cores * 1e6) / microseconds)}/s`,
      measures: single(microseconds, 'us', cpuUsMax === undefined ? undefined : atMost(cpuUsMax)),
    },
    {
      what: 'memory, most',
      value: mebibytes(result.memory_max_bytes),
      bar: '≤ 2 GiB',
      note: result.memory,
      measures: single(result.memory_max_bytes, 'bytes', atMost(LOADED_BYTES_MAX)),
    },
  ];
}

/** Omits single times from --json. */
const withoutRaw = (result: RunResult) => ({ ...result, latencies: result.latencies.length });

export interface IngestOptions {
  target: Target;
  runSql: RunSql;
  vocabulary: Vocabulary;
  seconds: number;
  rate: number;
  shape: Shape;
  progress: (line: string) => void;
}

/** Sends batches of 200 events to the custom endpoint. */
export async function benchIngest({ vocabulary, shape, rate, ...rest }: IngestOptions): Promise<Section> {
  const random = seededRandom(11);
  const bodies = Array.from({ length: BATCH_BODIES }, () => batchBody(shape, vocabulary, random));
  const bytes = bodies.reduce((sum, body) => sum + body.bytes.length, 0) / bodies.length / BATCH_EVENTS;
  const pace = rate === Infinity ? 'as fast as acknowledged' : `paced at ${thousands(rate)}/s`;
  rest.progress(
    `ingest: batches of ${BATCH_EVENTS} events of ${thousands(bytes)} B (${shape}), ${pace}, ${rest.seconds} s`,
  );
  const result = await runLoad({
    ...rest,
    format: 'custom',
    bodies,
    bodyEvents: BATCH_EVENTS,
    lanes: BATCH_LANES,
    rate,
  });
  return {
    title: `Ingest in batches of 200 (${shape === 'texts' ? 'model calls with searchable text' : 'plain events'}, ${thousands(bytes)} B each, ${pace})`,
    rows: rowsOf(result, 20_000, 'events', CPU_US_MAX),
    data: withoutRaw(result),
  };
}

/** Sends one event a request on 64 connections. */
export async function benchSingle({ vocabulary, rate, ...rest }: Omit<IngestOptions, 'shape'>): Promise<Section> {
  const random = seededRandom(12);
  const bodies = Array.from({ length: SINGLE_BODIES }, () => singleBody(vocabulary, random));
  rest.progress(`single: one chatcompletion event a request, ${SINGLE_LANES} connections, ${rest.seconds} s`);
  const result = await runLoad({ ...rest, format: 'chatcompletion', bodies, bodyEvents: 1, lanes: SINGLE_LANES, rate });
  const pace = rate === Infinity ? 'as fast as acknowledged' : `paced at ${thousands(rate)}/s`;
  return {
    title: `One-event requests (chatcompletion, ${SINGLE_LANES} connections, ${pace})`,
    rows: rowsOf(result, 10_000, 'requests'),
    data: withoutRaw(result),
  };
}
