// `npm run bench -- compare a b`: whether one commit is slower than another on this machine, in
// alternation. Both are exported side by side into a temporary folder and started from there; the
// load, the clock and the reads are this tree's, over HTTP, so an older commit need not know this
// benchmark. Two things bypass HTTP: landed rows are counted in the tables spans and
// span_texts_recent, and the store of the reads is filled by each commit's own test/bench/fill.ts,
// which knows its columns.
import { rmSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { BATCH_EVENTS, batchBody, singleBody } from './bodies.ts';
import { compareSeries, turnsOf, type Comparison, type Series } from './compare_stats.ts';
import type * as fill from './fill.ts';
import { runLoad, type RunResult } from './ingest.ts';
import type { CompareOptions } from './options.ts';
import { measureReads } from './reads.ts';
import { markdownTable, ms, percentile, thousands } from './report.ts';
import { sqlRunner } from './store.ts';
import { newPlace, startAt, startTarget, type Place, type StartedTarget } from './target.ts';
import { exportTree, newTreesDir, type Tree } from './trees.ts';
import { seededRandom, Vocabulary } from './vocabulary.ts';

const BODIES = 64;
const SINGLE_BODIES = 2048;
const BATCH_LANES = 8;
const SINGLE_LANES = 64;

type Progress = (line: string) => void;

/** Both sides' numbers by metric, in order of arrival. */
class Numbers {
  readonly #series = new Map<string, Series & { a: number[]; b: number[] }>();

  add(side: 'a' | 'b', metric: string, unit: string, value: number, moreIsBetter = false): void {
    let series = this.#series.get(metric);
    if (series === undefined) {
      series = { metric, unit, more_is_better: moreIsBetter, a: [], b: [] };
      this.#series.set(metric, series);
    }
    series[side].push(value);
  }

  /** The metrics that both sides have: a commit may lack a read that the other has. */
  get all(): Series[] {
    return [...this.#series.values()].filter(({ a, b }) => a.length > 0 && b.length > 0);
  }
}

interface Comparing {
  options: CompareOptions;
  numbers: Numbers;
  progress: Progress;
  vocabulary: Vocabulary;
  trees: Record<'a' | 'b', Tree>;
  /** The running service. */
  running: StartedTarget | null;
  stopping: AbortSignal;
}

async function withService<T>(
  comparing: Comparing,
  side: 'a' | 'b',
  work: (target: StartedTarget) => Promise<T>,
  place?: Place,
): Promise<T> {
  comparing.stopping.throwIfAborted();
  const from = { root: comparing.trees[side].root };
  const target = place === undefined ? await startTarget({}, from) : await startAt(place, {}, from);
  comparing.running = target;
  try {
    return await work(target);
  } finally {
    comparing.running = null;
    await target.stop();
  }
}

async function load(comparing: Comparing, side: 'a' | 'b', part: 'ingest' | 'single'): Promise<void> {
  const { vocabulary, options, numbers } = comparing;
  const random = seededRandom(part === 'ingest' ? 11 : 12);
  const bodies =
    part === 'ingest'
      ? Array.from({ length: BODIES }, () => batchBody('texts', vocabulary, random))
      : Array.from({ length: SINGLE_BODIES }, () => singleBody(vocabulary, random));
  const result = await withService(comparing, side, (target) =>
    runLoad({
      target,
      runSql: sqlRunner(target.clickhouseUrl ?? ''),
      format: part === 'ingest' ? 'custom' : 'chatcompletion',
      bodies,
      bodyEvents: part === 'ingest' ? BATCH_EVENTS : 1,
      lanes: part === 'ingest' ? BATCH_LANES : SINGLE_LANES,
      rate: Infinity,
      seconds: options.seconds,
      progress: () => undefined,
    }),
  );
  for (const [metric, unit, value, moreIsBetter] of loadNumbers(result))
    numbers.add(side, `${part}: ${metric}`, unit, value, moreIsBetter);
}

/** [metric, unit, value, more is better] */
type LoadNumber = [string, string, number, boolean];

function loadNumbers(result: RunResult): LoadNumber[] {
  const cpu = Object.values(result.cpu_s).reduce((sum, used) => sum + used, 0);
  return [
    ['events to queryable', '/s', result.to_queryable_per_s, true],
    ['CPU of the service an event', 'µs', (cpu / result.acknowledged) * 1e6, false],
    ...Object.entries(result.cpu_s).map(([name, used]): LoadNumber => [
      `CPU of ${name} an event`,
      'µs',
      (used / result.acknowledged) * 1e6,
      false,
    ]),
    ['acknowledged, p50', 'ms', result.latency_p50_ms, false],
    ['memory, most', 'MiB', result.memory_max_bytes / 1024 ** 2, false],
  ];
}

/** Fills a store of each commit once. */
async function fillStores(comparing: Comparing, places: Record<'a' | 'b', Place>): Promise<void> {
  for (const side of ['a', 'b'] as const) {
    comparing.progress(`reads: filling the store of ${comparing.trees[side].name}`);
    const file = pathToFileURL(path.join(comparing.trees[side].root, 'test/bench/fill.ts')).href;
    const { fillStore } = (await import(file)) as Pick<typeof fill, 'fillStore'>;
    await withService(
      comparing,
      side,
      ({ clickhouseUrl, org }) => fillStore(clickhouseUrl ?? '', org, comparing.options.spans, comparing.progress),
      places[side],
    );
  }
}

async function reads(comparing: Comparing, side: 'a' | 'b', place: Place): Promise<void> {
  const { measured } = await withService(comparing, side, measureReads, place);
  for (const { what, times } of measured) comparing.numbers.add(side, `${what}, p50`, 'ms', percentile(times, 0.5));
}

async function takeTurns(comparing: Comparing): Promise<void> {
  const { options, progress } = comparing;
  const places = { a: await newPlace(), b: await newPlace() };
  try {
    if (options.parts.includes('reads')) await fillStores(comparing, places);
    for (const [turn, side] of turnsOf(options.rounds).entries()) {
      progress(`turn ${turn + 1} of ${options.rounds * 2}: ${side}, load average ${(loadavg()[0] ?? 0).toFixed(1)}`);
      for (const part of options.parts) {
        if (part === 'reads') await reads(comparing, side, places[side]);
        else await load(comparing, side, part);
      }
    }
  } finally {
    for (const { dataDir } of Object.values(places)) rmSync(dataDir, { recursive: true, force: true });
  }
}

const short = (value: number): string => (value >= 1000 ? thousands(value) : ms(value));

function comparisonText(found: readonly Comparison[]): string {
  return markdownTable(
    ['Measured', 'a', 'b', 'cost of b', '95 % of draws', 'b is'],
    found.map(({ metric, unit, a, b, cost, low, high, verdict }) => [
      metric,
      `${short(a)} ${unit}`,
      `${short(b)} ${unit}`,
      `× ${cost.toFixed(2)}`,
      `${low.toFixed(2)} to ${high.toFixed(2)}`,
      verdict,
    ]),
  );
}

/** @returns true when b is worse than a beyond the tolerance in anything */
export async function compare(options: CompareOptions, stopping: AbortSignal, progress: Progress): Promise<boolean> {
  const folder = newTreesDir();
  try {
    const [a, b] = options.commits;
    const trees = {
      a: exportTree(a, path.join(folder, 'a'), progress),
      b: exportTree(b, path.join(folder, 'b'), progress),
    };
    const comparing: Comparing = {
      options,
      numbers: new Numbers(),
      progress,
      vocabulary: new Vocabulary(),
      trees,
      running: null,
      stopping,
    };
    stopping.addEventListener('abort', () => void comparing.running?.stop());
    await takeTurns(comparing);
    const found = comparing.numbers.all.map((series) => compareSeries(series, options.tolerance));
    console.log(
      `a: ${trees.a.name}\nb: ${trees.b.name}\n${options.rounds} rounds, tolerance ${options.tolerance * 100} %\n`,
    );
    console.log(comparisonText(found));
    if (options.json !== undefined)
      writeFileSync(
        options.json,
        `${JSON.stringify({ a: trees.a.name, b: trees.b.name, found, series: comparing.numbers.all }, null, 2)}\n`,
      );
    return found.some(({ verdict }) => verdict === 'worse');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
