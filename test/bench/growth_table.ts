// How reads grow with the stored data: one table of the median of each read at each size of the
// store, from the results of a run over several sizes. Pure.
import { markdownTable, thousands } from './report.ts';
import type { Results } from './results.ts';

/** A read of every size, which the reads beside a load have under another name. */
const EVERY_SIZE = 'list, no filter';
/** Times that a read may take of what it took at the size before, with five times the spans. */
const TIMES_MAX = 2;

const millions = (spans: number): string => `${thousands(spans / 1e6)} M spans`;

/** Returns the table; null where the results have reads at fewer than two sizes. */
export function growthTable({ sections }: Results): string | null {
  const columns = sections
    .filter(({ part, rows }) => part === 'reads' && rows.some(({ what }) => what === EVERY_SIZE))
    .map(({ spans, rows }) => ({ spans: spans ?? 0, medians: mediansOf(rows) }))
    .filter(({ medians }) => medians.size > 0)
    .sort((a, b) => a.spans - b.spans);
  const [before, last] = columns.slice(-2);
  if (before === undefined || last === undefined) return null;
  const rows = [...last.medians].map(([what, ms]) => {
    const times = ms / (before.medians.get(what) ?? NaN);
    return [
      what,
      ...columns.map(({ medians }) => milliseconds(medians.get(what))),
      Number.isFinite(times) ? `${times.toFixed(1)} times` : '',
      Number.isFinite(times) ? (times <= TIMES_MAX ? 'yes' : 'no') : '',
    ];
  });
  const head = ['p50', ...columns.map(({ spans }) => millions(spans)), 'Growth', `At most ${TIMES_MAX} times`];
  return `Growth from ${millions(before.spans)} to ${millions(last.spans)}:\n\n${markdownTable(head, rows)}`;
}

const milliseconds = (ms: number | undefined): string => (ms === undefined ? '' : `${thousands(ms)} ms`);

/** Returns the median of each read, in milliseconds. */
function mediansOf(rows: Results['sections'][number]['rows']): Map<string, number> {
  return new Map(
    rows.flatMap(({ what, measures }) => {
      const p50 = measures.find(({ name, unit }) => name === 'p50' && unit === 'ms')?.value ?? null;
      return p50 === null ? [] : [[what, p50] as const];
    }),
  );
}
