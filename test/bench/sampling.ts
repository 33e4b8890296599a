// The cost of tail sampling: the same load, as fast as it is acknowledged, on a service that
// decides event by event and on one that buffers traces until they are complete. Both run all the
// time and alternate, so that other work on the machine affects both.
import { BATCH_EVENTS, batchBody } from './bodies.ts';
import { runLoad, type RunResult } from './ingest.ts';
import { mebibytes, thousands, type Section, single, atLeast } from './report.ts';
import { sqlRunner } from './store.ts';
import { startTarget, type Target } from './target.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

/** Settings of both services: what no rule keeps is sampled. */
export const SAMPLED = { SERVICE_SAMPLING_PROFILE: 'balanced' };
const BODIES = 128;
const LANES = 8;
const TURNS = ['off', 'on', 'on', 'off'] as const;
const SHARE_MIN = 0.7;

type Mode = (typeof TURNS)[number];

export interface SamplingOptions {
  /** One started with SAMPLED, and one without tail sampling. */
  target: Target;
  vocabulary: Vocabulary;
  /** Seconds of all turns together. */
  seconds: number;
  progress: (line: string) => void;
}

/** Returns events a second from HTTP to queryable over all turns of a mode. */
function rateOf(results: readonly RunResult[]): number {
  const events = results.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
  return (
    events / results.reduce((sum, { acknowledged, to_queryable_per_s }) => sum + acknowledged / to_queryable_per_s, 0)
  );
}

/** CPU time of the service for an event, microseconds. */
function cpuOf(results: readonly RunResult[], part?: string): number {
  const events = results.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
  const seconds = results.flatMap(({ cpu_s }) =>
    Object.entries(cpu_s).map(([name, used]) => (part === undefined || name === part ? used : 0)),
  );
  return (seconds.reduce((sum, used) => sum + used, 0) / events) * 1e6;
}

export async function benchSampling({ target, vocabulary, seconds, progress }: SamplingOptions): Promise<Section> {
  const holding = await startTarget({ ...SAMPLED, SERVICE_SAMPLING_TAIL: 'true' });
  const results: Record<Mode, RunResult[]> = { off: [], on: [] };
  const full: Record<Mode, string> = { off: '', on: '' };
  try {
    const services: Record<Mode, Target> = { off: target, on: holding };
    for (const [turn, mode] of TURNS.entries()) {
      const service = services[mode];
      if (service.clickhouseUrl === null) throw new Error('sampling looks into ClickHouse');
      const runSql = sqlRunner(service.clickhouseUrl);
      const random = seededRandom(21 + turn);
      const bodies = Array.from({ length: BODIES }, () => batchBody('texts', vocabulary, random));
      progress(`sampling: tail sampling ${mode}, ${seconds / TURNS.length} s`);
      const load = {
        target: service,
        runSql,
        format: 'custom',
        bodies,
        bodyEvents: BATCH_EVENTS,
        lanes: LANES,
        rate: Infinity,
      };
      results[mode].push(await runLoad({ ...load, seconds: Math.ceil(seconds / TURNS.length), progress }));
      full[mode] = `${await runSql('SELECT round(avg(sampled) * 100, 1) FROM spans FORMAT TSV')} %`;
    }
  } finally {
    await holding.stop();
  }
  const [off, on] = [rateOf(results.off), rateOf(results.on)];
  const memory = (mode: Mode): string =>
    mebibytes(Math.max(...results[mode].map(({ memory_max_bytes }) => memory_max_bytes)));
  const cpu = (mode: Mode): string =>
    `CPU an event ${Math.round(cpuOf(results[mode]))} µs, of it the worker ${Math.round(cpuOf(results[mode], 'worker'))} µs; memory ${memory(mode)}; stored in full ${full[mode]}`;
  return {
    title: 'Tail sampling (profile balanced, batches of 200 model calls, traces of 12, as fast as acknowledged)',
    rows: [
      {
        what: 'off: landed, until the last is queryable',
        value: `${thousands(off)}/s`,
        note: cpu('off'),
        measures: single(off, 'per_s'),
      },
      {
        what: 'on: landed, until the last is queryable',
        value: `${thousands(on)}/s`,
        note: cpu('on'),
        measures: single(on, 'per_s'),
      },
      {
        what: 'on, of off',
        value: `${((on / off) * 100).toFixed(0)} %`,
        bar: `≥ ${SHARE_MIN * 100} %`,
        note: `turns: ${TURNS.join(', ')}`,
        measures: single(on / off, 'share', atLeast(SHARE_MIN)),
      },
    ],
    data: Object.fromEntries(
      TURNS.map((mode) => [mode, results[mode].map((result) => ({ ...result, latencies: result.latencies.length }))]),
    ),
  };
}
