// Reads while events arrive: the same reads first without load and then beside it, in one run.
import { setTimeout as pause } from 'node:timers/promises';
import { BATCH_EVENTS, batchBody } from './bodies.ts';
import { Load } from './load.ts';
import { measureDailyReads } from './reads.ts';
import { atMost, ms, percentile, quantiles, thousands, type ReportRow, type Section } from './report.ts';
import { laneTarget, type Target } from './target.ts';
import type { Measured } from './timed_reads.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

const LANES = 4;
const BODIES = 64;
const WARM_MS = 5000;
/** A read beside the load may take this many times the p99 of the same read without it. */
const TIMES_MAX = 2;

export interface LoadedReadsOptions {
  target: Target;
  vocabulary: Vocabulary;
  spans: number;
  /** Events a second. */
  rate: number;
  progress: (line: string) => void;
}

/** Measures the reads without and with a load of ingest. */
export async function benchLoadedReads(options: LoadedReadsOptions): Promise<Section> {
  const { target, vocabulary, spans, rate, progress } = options;
  progress('reads: list, costs and trees without load');
  const quiet = await measureDailyReads(target);
  progress(`reads: the same beside ${thousands(rate)} events/s`);
  const random = seededRandom(13);
  const load = new Load({
    target: laneTarget(target),
    path: `/orgs/${target.org}/ingest/custom`,
    bodies: Array.from({ length: BODIES }, () => batchBody('texts', vocabulary, random)),
    bodyEvents: BATCH_EVENTS,
    lanes: LANES,
    rate,
  });
  load.start();
  try {
    await pause(WARM_MS);
    const [began, before] = [performance.now(), load.acknowledged];
    const loaded = await measureDailyReads(target);
    const achieved = (load.acknowledged - before) / ((performance.now() - began) / 1000);
    return {
      title: `Reads at ${thousands(spans)} spans beside ${thousands(achieved)} events/s`,
      rows: loaded.map((measured, index) => rowOf(measured, quiet[index]?.times ?? [])),
      data: { rate: achieved, refused: load.refused },
    };
  } finally {
    await load.stop();
  }
}

function rowOf({ what, times, failed = [] }: Measured, quiet: readonly number[]): ReportRow {
  const bar = TIMES_MAX * percentile(quiet, 0.99);
  return {
    what: `${what}, beside ingest`,
    value: failed.length === 0 ? quantiles(times) : `${failed.length} of ${failed.length + times.length} failed`,
    bar: `p99 ≤ ${ms(bar)} ms`,
    note: `without load ${quantiles(quiet)}${failed.length === 0 ? '' : `; such as ${failed[0] ?? ''}`}`,
    measures: [
      { name: 'p50', value: percentile(times, 0.5), unit: 'ms', samples: times.length },
      { name: 'p99', value: percentile(times, 0.99), unit: 'ms', samples: times.length, bar: atMost(bar) },
    ],
  };
}
