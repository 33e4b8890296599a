// Formats numbers: percentiles, slopes, tables in Markdown.
import { linearRegression, quantile } from 'simple-statistics';

export type Unit = 'ms' | 's' | 'us' | 'per_s' | 'bytes' | 'bytes_per_day' | 'share' | 'count';

/** The promise about a number. */
export interface Bar {
  sense: 'at_most' | 'at_least';
  value: number;
}

/** A number of a row, for programs. */
export interface Measure {
  /** p50, p99, … of a row with several; `value` of a row with one. */
  name: string;
  /** NaN when nothing was measured. */
  value: number;
  unit: Unit;
  /** Number of measurements behind it. */
  samples?: number;
  bar?: Bar;
}

/** A line of a report: what was measured, the result, the promise. */
export interface ReportRow {
  what: string;
  value: string;
  bar?: string;
  note?: string;
  measures?: readonly Measure[];
}

export interface Section {
  title: string;
  rows: ReportRow[];
  /** Spans in the store that was read; absent where it does not matter. */
  spans?: number;
  /** Raw numbers for --json. */
  data: unknown;
}

export const atMost = (value: number): Bar => ({ sense: 'at_most', value });
export const atLeast = (value: number): Bar => ({ sense: 'at_least', value });

/** The one number of a row. */
export const single = (value: number, unit: Unit, bar?: Bar, samples?: number): Measure[] => [
  { name: 'value', value, unit, ...(samples === undefined ? {} : { samples }), ...(bar === undefined ? {} : { bar }) },
];

/** Returns p50 and p99 of times, with the promise about each. */
export function p50p99(
  times: readonly number[],
  bars: { p50?: number; p99?: number } = {},
  unit: Unit = 'ms',
): Measure[] {
  return (
    [
      ['p50', 0.5],
      ['p99', 0.99],
    ] as const
  ).map(([name, p]) => {
    const most = bars[name];
    return {
      name,
      value: percentile(times, p),
      unit,
      samples: times.length,
      ...(most === undefined ? {} : { bar: atMost(most) }),
    };
  });
}

/** Bars of p50 and p99 in milliseconds as text. */
export const barText = ({ p50, p99 }: { p50?: number; p99?: number }): string =>
  [p50 === undefined ? '' : `p50 ≤ ${p50} ms`, p99 === undefined ? '' : `p99 ≤ ${p99} ms`]
    .filter((text) => text !== '')
    .join(', ');

/**
 * Returns whether a number keeps its promise; null without a promise. A missing number keeps none.
 */
export function holds(value: number | null, bar: Bar | null): boolean | null {
  if (bar === null) return null;
  if (value === null || !Number.isFinite(value)) return false;
  return bar.sense === 'at_most' ? value <= bar.value : value >= bar.value;
}

/** Returns a percentile, 0 to 1; NaN without values. */
export const percentile = (values: readonly number[], p: number): number =>
  values.length === 0 ? NaN : quantile([...values], p);

/** Returns the slope of y over x by least squares; 0 with fewer than two points. */
export const slope = (points: readonly [number, number][]): number =>
  points.length < 2 ? 0 : linearRegression(points.map((point) => [...point])).m;

export const thousands = (value: number): string =>
  Number.isFinite(value) ? Math.round(value).toLocaleString('en-US') : '–';
export const ms = (value: number): string =>
  Number.isFinite(value) ? (value < 10 ? value.toFixed(1) : String(Math.round(value))) : '–';
export const us = (value: number): string => `${value.toFixed(1)} µs`;
export const mebibytes = (bytes: number): string => `${thousands(bytes / 1024 ** 2)} MiB`;
export const quantiles = (values: readonly number[]): string =>
  `p50 ${ms(percentile(values, 0.5))} ms, p99 ${ms(percentile(values, 0.99))} ms (n=${values.length})`;

/** Returns a Markdown table with padded columns. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)));
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? '').padEnd(width)).join(' | ')} |`;
  return [line(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join('\n');
}

export function sectionText({ title, rows }: Section): string {
  return `### ${title}\n\n${markdownTable(
    ['Measured', 'Result', 'Bar', 'Note'],
    rows.map((row) => [row.what, row.value, row.bar ?? '', row.note ?? '']),
  )}\n`;
}
