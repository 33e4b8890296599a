// Charts of how reads grow with the stored data: one SVG for each kind of read, from the results of
// a run over several sizes.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { lineChart, type Series } from '../support/plot.ts';
import type { ResultRow, Results } from './results.ts';

/** By file name: the chart's title, and the rows that are its lines. */
const CHARTS: Readonly<Record<string, { title: string; rows: RegExp }>> = {
  list: { title: 'Trace list, a page of 50', rows: /^list, (no filter|by agent|error and agent|last 7 days)$/ },
  search_7_days: { title: 'BM25 search, 7 days', rows: /^BM25 search, 7 days, / },
  search_90_days: { title: 'BM25 search, 90 days', rows: /^BM25 search, 90 days, / },
  tree: { title: 'Tree and timeline of a trace', rows: /^(tree|timeline) of / },
  cost: { title: 'Cost summary', rows: /^cost summary, / },
};
const PERCENTILES = ['p50', 'p99'] as const;

const milliseconds = (row: ResultRow, name: string): number | null =>
  row.measures.find((measure) => measure.name === name && measure.unit === 'ms')?.value ?? null;

/** Returns the lines of a chart: p50 and p99 of each of its rows against the spans in the store. */
export function growthSeries(results: Results, rows: RegExp): Series[] {
  const lines = new Map<string, { of: string; points: [number, number][] }>();
  for (const { part, spans, rows: measured } of results.sections) {
    if (part !== 'reads' || spans === null) continue;
    for (const row of measured.filter(({ what }) => rows.test(what)))
      for (const name of PERCENTILES) {
        const value = milliseconds(row, name);
        const line = `${row.what}, ${name}`;
        const { points } = lines.get(line) ?? { points: [] };
        if (value !== null) lines.set(line, { of: row.what, points: [...points, [spans, value]] });
      }
  }
  return [...lines].map(([name, { of, points }]) => ({ name, of, points: points.sort(([a], [b]) => a - b) }));
}

/** Writes growth_<chart>.svg for each chart with results, and returns the files. */
export function writePlots(folder: string, results: Results): string[] {
  mkdirSync(folder, { recursive: true });
  return Object.entries(CHARTS).flatMap(([name, { title, rows }]) => {
    const series = growthSeries(results, rows);
    if (series.length === 0) return [];
    const file = path.join(folder, `growth_${name}.svg`);
    writeFileSync(
      file,
      lineChart({ title, x_label: 'spans in the store', y_label: 'ms', series, log_x: true, log_y: true }),
    );
    return [file];
  });
}
