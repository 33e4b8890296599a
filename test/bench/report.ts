// Numbers for people: percentiles, slopes, tables in Markdown.
import { linearRegression, quantile } from 'simple-statistics';

/** A line of a report: what was measured, what came out, what was promised. */
export interface ReportRow {
  what: string;
  value: string;
  bar?: string;
  note?: string;
}

export interface Section {
  title: string;
  rows: ReportRow[];
  /** Raw numbers for --json. */
  data: unknown;
}

/** A percentile, 0 to 1; NaN without values. */
export const percentile = (values: readonly number[], p: number): number => (values.length === 0 ? NaN : quantile([...values], p));

/** How fast y grows with x, by least squares; 0 with fewer than two points. */
export const slope = (points: readonly [number, number][]): number =>
  points.length < 2 ? 0 : linearRegression(points.map((point) => [...point])).m;

export const thousands = (value: number): string => (Number.isFinite(value) ? Math.round(value).toLocaleString('en-US') : '–');
export const ms = (value: number): string => (Number.isFinite(value) ? (value < 10 ? value.toFixed(1) : String(Math.round(value))) : '–');
export const mebibytes = (bytes: number): string => `${thousands(bytes / 1024 ** 2)} MiB`;
export const quantiles = (values: readonly number[]): string =>
  `p50 ${ms(percentile(values, 0.5))} ms, p99 ${ms(percentile(values, 0.99))} ms (n=${String(values.length)})`;

/** A Markdown table with padded columns, readable as it is. */
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
