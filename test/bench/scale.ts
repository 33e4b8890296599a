// Measures what shards and streams cost on one machine: the same load and the same reads on a service of one
// shard and one stream, of two shards, and of four streams. Each set-up runs by itself in processes of
// its own, an API process, two workers and a nats-server beside the engines; rounds alternate the order.
// All set-ups share the cores of the machine, so a ratio shows the overhead of dividing the work and
// not the gain of further machines.
import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { SMALL, Stack } from '../chaos/stack.ts';
import { BATCH_EVENTS, batchBody } from './bodies.ts';
import { runLoad, type RunResult } from './ingest.ts';
import type { ScaleOptions } from './options.ts';
import { cpuBetween, processTree, type ProcessUse } from './processes.ts';
import { atMost, mebibytes, ms, percentile, thousands, us, type ReportRow, type Section, type Unit } from './report.ts';
import { merged, sqlRunner } from './store.ts';
import type { Target } from './target.ts';
import { type Ask, Reader, timed, type Measured } from './timed_reads.ts';
import { type Random, seededRandom, type Vocabulary, wordOf } from './vocabulary.ts';

const SET_UPS = {
  base: { shards: 1, streams: 1 },
  shards: { shards: 2, streams: 1 },
  streams: { shards: 1, streams: 4 },
} as const;
type SetUp = keyof typeof SET_UPS;

const PARTITIONS = 8;
const BODIES = 128;
const LANES = 8;
const RUNS = 15;
const WARM_RUNS = 3;
const SETTLE_MS_MAX = 120_000;
const IDLE_MS = 8000;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Ranks of common words, each of which is in 10 to 20 % of the texts. */
const COMMON_WORDS = { from: 64, count: 86 };
/** Kinds of processes in the order of their rows. */
const KINDS = ['clickhouse', 'worker', 'api', 'nats-server'] as const;

/** Settings of every set-up: traces complete as in production, and the log of the processes is short. */
const SETTINGS = {
  SERVICE_PARTITIONS: String(PARTITIONS),
  SERVICE_TRACE_GRACE_MS: '1000',
  SERVICE_TRACE_IDLE_MS: '30000',
  SERVICE_LOG_LEVEL: 'warn',
};

export interface ScaleBenchOptions extends ScaleOptions {
  vocabulary: Vocabulary;
  stopping: AbortSignal;
  progress: (line: string) => void;
}

/** The figures of one set-up in one round. */
interface Trial {
  load: RunResult;
  /** CPU time by kind of process from the first event until merges have settled, microseconds an event. */
  cpu_us: Record<string, number>;
  /** Share of a core that each kind of process uses while nothing arrives. */
  idle: Record<string, number>;
  /** Memory of all processes once merges have settled; shared pages count once. */
  memory_bytes: number;
  /** Spans in each shard. */
  spans: number[];
  reads: Measured[];
}

const idsShape = z.array(z.looseObject({ trace_id: z.string() }));

/** Returns the reads, each of which asks every shard except that of one trace. */
async function readsOf(reader: Reader, random: Random): Promise<[string, () => Ask][]> {
  const since = new Date(Math.floor((Date.now() - DAY_MS) / HOUR_MS) * HOUR_MS).toISOString();
  const lastDay = `since=${encodeURIComponent(since)}`;
  const { answer } = await reader.answer(`/v1/traces?limit=200&${lastDay}`);
  const ids = idsShape.parse(answer.data).map(({ trace_id }) => trace_id);
  const word = (): string => wordOf(COMMON_WORDS.from + (random() % COMMON_WORDS.count));
  const byModel = { view: 'spans', since, measures: [{ measure: 'count', agg: 'sum' }], group_by: ['model'] };
  return [
    ['list of traces, last day', () => `/v1/traces?limit=50&${lastDay}`],
    ['outline of one trace', () => `/v1/traces/${ids[random() % ids.length] ?? ''}/outline`],
    ['BM25 search, a common word', () => `/v1/spans/search?limit=50&${lastDay}&q=${word()}`],
    ['cost summary, 30 days, by model', () => '/v1/cost/summary?days=30'],
    ['analytics, spans by model, last day', () => ({ path: '/v1/analytics/query', body: byModel })],
    ['facets, all fields, last day', () => `/v1/traces/facets?${lastDay}`],
  ];
}

async function measureReads(target: Target): Promise<Measured[]> {
  const reader = new Reader(target);
  try {
    const measured: Measured[] = [];
    for (const [what, ask] of await readsOf(reader, seededRandom(41)))
      measured.push(await timed(reader, what, RUNS, ask, undefined, WARM_RUNS));
    return measured;
  } finally {
    reader.close();
  }
}

const perEvent = (used: ReadonlyMap<string, number>, events: number): Record<string, number> =>
  Object.fromEntries([...used].map(([kind, seconds]) => [kind, (seconds / events) * 1e6]));

/** Sends the load to a stack that has started, waits until merges have settled, and times the reads. */
async function measure(stack: Stack, { vocabulary, seconds, rate, progress }: ScaleBenchOptions): Promise<Trial> {
  const { url, org, key, clickhouseUrl } = stack.address;
  const target: Target = { url, org, key, clickhouseUrl, pid: null, dataDir: null, stop: () => stack.stop() };
  const shards = stack.shardUrls.map(sqlRunner);
  const pids = stack.processes.map((name) => stack.pidOf(name)).filter((pid) => pid !== undefined);
  const tree = (): ProcessUse[] => pids.flatMap(processTree);
  const random = seededRandom(40);
  const bodies = Array.from({ length: BODIES }, () => batchBody('texts', vocabulary, random));
  const before = tree();
  const load = await runLoad({
    target,
    tree,
    runSql: sqlRunner(clickhouseUrl),
    format: 'custom',
    bodies,
    bodyEvents: BATCH_EVENTS,
    lanes: LANES,
    rate,
    seconds,
    progress,
  });
  await Promise.all(shards.map((runSql) => merged(runSql, SETTLE_MS_MAX)));
  const settled = tree();
  const spans = (await Promise.all(shards.map((runSql) => runSql('SELECT count() FROM spans')))).map(Number);
  const landed = spans.reduce((sum, count) => sum + count, 0);
  if (landed < load.acknowledged)
    throw new Error(`${thousands(landed)} of ${thousands(load.acknowledged)} acknowledged events landed`);
  const reads = await measureReads(target);
  const idleFrom = [tree(), performance.now()] as const;
  await pause(IDLE_MS);
  const idle = cpuBetween(idleFrom[0], tree());
  const idleS = (performance.now() - idleFrom[1]) / 1000;
  if (stack.unexpected.length > 0) throw new Error(stack.unexpected.join('; '));
  return {
    load,
    cpu_us: perEvent(cpuBetween(before, settled), load.acknowledged),
    idle: Object.fromEntries([...idle].map(([kind, used]) => [kind, used / idleS])),
    memory_bytes: settled.reduce((sum, { share_bytes }) => sum + share_bytes, 0),
    spans,
    reads,
  };
}

/** Starts a set-up, measures it and stops it. */
async function trial(setUp: SetUp, options: ScaleBenchOptions): Promise<Trial> {
  const { shards, streams } = SET_UPS[setUp];
  options.progress(`scale: shards ${shards}, streams ${streams}, ${options.rate} events a second`);
  const stack = new Stack({
    ...SMALL,
    shards,
    syncedByWorkers: true,
    env: { ...SETTINGS, SERVICE_LOG_STREAMS: String(streams) },
  });
  const onAbort = (): void => void stack.stop().then(() => process.exit(130));
  options.stopping.addEventListener('abort', onAbort);
  try {
    await stack.start();
    return await measure(stack, options);
  } finally {
    options.stopping.removeEventListener('abort', onAbort);
    await stack.stop();
  }
}

/** A measure of both sides of a comparison. */
interface Compared {
  what: string;
  unit: Unit;
  /** Returns the figure of a round; the row shows the median of the rounds. */
  of: (trial: Trial) => number;
  text: (value: number) => string;
}

const total = (figures: Record<string, number>): number => Object.values(figures).reduce((sum, one) => sum + one, 0);
const generatorUs = ({ load }: Trial): number => (load.generator_cpu_s / load.acknowledged) * 1e6;

/** Everything that is compared but the reads. */
const COMPARED: readonly Compared[] = [
  {
    what: 'events landed, until the last is queryable',
    unit: 'per_s',
    of: ({ load }) => load.to_queryable_per_s,
    text: (value) => `${thousands(value)}/s`,
  },
  // A lag makes inserts larger, which makes them and their merges cheaper.
  { what: 'most events waiting to land', unit: 'count', of: ({ load }) => load.lag_max, text: thousands },
  {
    what: 'time to the acknowledgement, p50',
    unit: 'ms',
    of: ({ load }) => load.latency_p50_ms,
    text: (value) => `${ms(value)} ms`,
  },
  {
    what: 'CPU time an event, merges included',
    unit: 'us',
    of: (one) => total(one.cpu_us) + generatorUs(one),
    text: us,
  },
  ...KINDS.map((kind): Compared => ({
    what: `CPU time an event, ${kind}`,
    unit: 'us',
    of: ({ cpu_us }) => cpu_us[kind] ?? 0,
    text: us,
  })),
  { what: 'CPU time an event, load generator', unit: 'us', of: generatorUs, text: us },
  {
    what: 'CPU of all processes while idle, share of a core',
    unit: 'share',
    of: ({ idle }) => total(idle),
    text: (value) => `${(value * 100).toFixed(1)} %`,
  },
  {
    what: 'memory of all processes, merges settled',
    unit: 'bytes',
    of: ({ memory_bytes }) => memory_bytes,
    text: mebibytes,
  },
];

/** One side of a comparison: its name and its rounds. */
export interface Side {
  name: string;
  values: readonly number[];
}

/** Returns the row of a measure on two sides: the median of each, and the ratio of the second to the first. */
export function comparedRow(
  { what, unit, text }: Pick<Compared, 'what' | 'unit' | 'text'>,
  [one, other]: readonly [Side, Side],
  note = '',
): ReportRow {
  const [a, b] = [percentile(one.values, 0.5), percentile(other.values, 0.5)];
  return {
    what,
    value: `${text(a)} → ${text(b)} (× ${(b / a).toFixed(2)})`,
    note,
    measures: [
      { name: one.name, value: a, unit, samples: one.values.length },
      { name: other.name, value: b, unit, samples: other.values.length },
      { name: 'ratio', value: b / a, unit: 'share' },
    ],
  };
}

type Trials = Readonly<Record<SetUp, readonly Trial[]>>;

/** Returns the row of one read; the median is that of the runs of all rounds. */
function readRow(what: string, [one, other]: readonly [SideTrials, SideTrials]): ReportRow {
  const of = ({ trials }: SideTrials): Measured[] =>
    trials.flatMap(({ reads }) => reads.filter((read) => read.what === what));
  const side = (from: SideTrials): Side => ({ name: from.name, values: of(from).flatMap(({ times }) => times) });
  const failed = [one, other].flatMap(of).flatMap((read) => read.failed ?? []);
  const notes = [...new Set([one, other].flatMap(of).map(({ note }) => note))].filter((note) => note !== '');
  const row = comparedRow(
    { what, unit: 'ms', text: (value) => `${ms(value)} ms` },
    [side(one), side(other)],
    notes.join(' → '),
  );
  if (failed.length === 0) return row;
  const count = { name: 'failed', value: failed.length, unit: 'count', bar: atMost(0) } as const;
  return { ...row, value: `${failed.length} failed`, measures: [...(row.measures ?? []), count] };
}

interface SideTrials {
  name: string;
  trials: readonly Trial[];
}

/** Returns the table that compares a set-up with that of one shard and one stream. */
function comparison(title: string, sides: readonly [SideTrials, SideTrials]): Section {
  const [one, other] = sides;
  const rounds = one.trials.length;
  const rows = COMPARED.map((compared): ReportRow => {
    const side = ({ name, trials }: SideTrials): Side => ({ name, values: trials.map(compared.of) });
    const each = ({ trials }: SideTrials): string => trials.map(compared.of).map(compared.text).join(', ');
    const note = rounds === 1 ? '' : `rounds: ${each(one)} → ${each(other)}`;
    return comparedRow(compared, [side(one), side(other)], note);
  });
  const spans = sides.map(({ trials }) => trials.map((trial) => trial.spans.map(thousands).join(' + ')).join(', '));
  const reads = one.trials[0]?.reads.map(({ what }) => readRow(what, sides)) ?? [];
  const first = rows[0];
  if (first !== undefined) first.note = [`spans: ${spans.join(' → ')}`, first.note].filter(Boolean).join('; ');
  const raw = ({ load, ...rest }: Trial) => ({ ...rest, load: { ...load, latencies: load.latencies.length } });
  return {
    title,
    rows: [...rows, ...reads],
    data: Object.fromEntries(sides.map(({ name, trials }) => [name, trials.map(raw)])),
  };
}

/**
 * Compares one shard with two, and one stream with four.
 * @throws Error when a process of the service ends by itself, or an acknowledged event does not land
 */
export async function benchScale(options: ScaleBenchOptions): Promise<Section[]> {
  const trials = { base: [] as Trial[], shards: [] as Trial[], streams: [] as Trial[] } satisfies Trials;
  const order: SetUp[] = ['base', 'shards', 'streams'];
  for (let round = 0; round < options.rounds; round += 1)
    for (const setUp of round % 2 === 0 ? order : order.toReversed()) {
      if (options.stopping.aborted) return [];
      trials[setUp].push(await trial(setUp, options));
    }
  const same = `1 API process, 2 workers, 1 nats-server, ${PARTITIONS} partitions, all on the same cores; batches of ${BATCH_EVENTS} model calls at ${thousands(options.rate)}/s for ${options.seconds} s, ${options.rounds === 1 ? '1 round' : `medians of ${options.rounds} rounds`}; reads are medians over the rows that were sent`;
  return [
    comparison(`1 shard of ClickHouse → 2 shards (1 stream, ${same})`, [
      { name: '1 shard', trials: trials.base },
      { name: '2 shards', trials: trials.shards },
    ]),
    comparison(
      `1 stream of the ingest log → 4 streams (1 shard, ${same}; streams have no effect on reads, whose ratios show the noise)`,
      [
        { name: '1 stream', trials: trials.base },
        { name: '4 streams', trials: trials.streams },
      ],
    ),
  ];
}
