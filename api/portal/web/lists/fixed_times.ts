// A range of time that moves with the clock, written as its two ends. Pure.
import { spanOf } from './list_query.ts';
import type { Range } from './list_url.ts';

/** Parameters that a range with fixed ends replaces; a list with an end is not live. */
const REPLACED = ['t', 'since', 'until', 'live'];

/** Returns the query string of a page with the ends of its range as of now, sorted by name. */
export function withFixedTimes(search: string, last: Range, now_ms: number): string {
  const { since_ms } = spanOf({ last }, now_ms);
  const params = new URLSearchParams(search);
  for (const name of REPLACED) params.delete(name);
  params.set('since', new Date(since_ms ?? 0).toISOString());
  params.set('until', new Date(now_ms).toISOString());
  params.sort();
  return params.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
}
