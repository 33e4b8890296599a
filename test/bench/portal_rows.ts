// The rows of the portal's benchmark: their promises, and how measured times become a row. Pure, so
// that it needs no browser. The part that drives the browser is test/browser/bench/portal.ts, which
// run.ts imports when it is asked for: its types are those of a page.
import { atMost, type Measure, ms, percentile, type ReportRow, type Section, single, type Unit } from './report.ts';
import type { Target } from './target.ts';
import type { Vocabulary } from './vocabulary.ts';

export interface PortalOptions {
  /** Sizes of the traces that are opened. */
  spans: readonly number[];
  runs: number;
  /** Spans with which the store is filled first; 0: the store stays as it is. */
  stored: number;
  /** True: also measures what an open page costs ingest. */
  ingest: boolean;
  /** Login link of a running service, as `npm run login` prints it. */
  login: string | null;
}

export interface PortalRun extends PortalOptions {
  target: Target;
  vocabulary: Vocabulary;
  /** Seconds of each run of the ingest part. */
  seconds: number;
  progress: (line: string) => void;
  stopping: AbortSignal;
}

/** Signature of the function that run.ts imports from test/browser/bench/portal.ts. */
export type BenchPortal = (run: PortalRun) => Promise<Section[]>;

export interface Bars {
  p50?: number;
  p95?: number;
}

/** Traces have at most this many spans in the portal. */
export const PORTAL_SPANS_MAX = 50_000;
/** A smaller trace has no rows to scroll. */
export const PORTAL_SPANS_MIN = 100;
export const PORTAL_SPANS = [1000, 10_000, 50_000] as const;
/** A frame of a display with 60 frames a second, rounded up to the precision of the clock of a page. */
export const FRAME_MS = 16.7;

/** Promises about the sizes of traces; other sizes have none. */
export const OPEN_BARS: Readonly<Record<number, Bars>> = {
  1000: { p50: 150, p95: 300 },
  10_000: { p50: 250, p95: 400 },
  50_000: { p50: 900, p95: 1500 },
};
export const CACHED_LINK_BARS: Readonly<Record<number, Bars>> = { 1000: { p50: 250 }, 10_000: { p50: 300 } };
export const COLD_LINK_BARS: Readonly<Record<number, Bars>> = { 1000: { p50: 400 }, 10_000: { p50: 500 } };

const barWords = ({ p50, p95 }: Bars): string =>
  [p50 === undefined ? '' : `p50 ≤ ${p50} ms`, p95 === undefined ? '' : `p95 ≤ ${p95} ms`]
    .filter((words) => words !== '')
    .join(', ');

/** Returns p50 and p95 of times, with the promise about each. */
export function p50p95(times: readonly number[], bars: Bars = {}): Measure[] {
  return (
    [
      ['p50', 0.5],
      ['p95', 0.95],
    ] as const
  ).map(([name, share]) => {
    const most = bars[name];
    return {
      name,
      value: percentile(times, share),
      unit: 'ms' as const,
      samples: times.length,
      ...(most === undefined ? {} : { bar: atMost(most) }),
    };
  });
}

/** Returns the row of a time that was measured in several runs. */
export function timesRow(what: string, times: readonly number[], bars: Bars = {}, note = ''): ReportRow {
  return {
    what,
    value: `p50 ${ms(percentile(times, 0.5))} ms, p95 ${ms(percentile(times, 0.95))} ms (n=${times.length})`,
    bar: barWords(bars),
    note,
    measures: p50p95(times, bars),
  };
}

/** Browsers report tasks from this length on; shorter ones count as none. */
const LONG_TASK_MS = 50;

/** Returns the row of the longest task of each run. */
export function taskRow(what: string, longest: readonly number[], most: number): ReportRow {
  const worst = longest.reduce((max, each) => Math.max(max, each), 0);
  const value = worst < LONG_TASK_MS ? `under ${LONG_TASK_MS} ms` : `${ms(worst)} ms`;
  return { what, value, bar: `≤ ${most} ms`, measures: single(worst, 'ms', atMost(most), longest.length) };
}

interface Figure {
  value: number;
  unit: Unit;
  words: string;
  most?: number;
  bar?: string;
  note?: string;
}

/** Returns the row of one number. */
export function figureRow(what: string, { value, unit, words, most, bar = '', note = '' }: Figure): ReportRow {
  return {
    what,
    value: words,
    bar,
    note,
    measures: single(value, unit, most === undefined ? undefined : atMost(most)),
  };
}

/** Returns the row of a part that could not be measured, so that the others still stand. */
export const failedRow = (what: string, error: unknown): ReportRow => ({
  what,
  value: 'not run',
  note: `failed: ${(error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''}`,
});

export const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
