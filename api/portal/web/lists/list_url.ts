// The state of a list as its URL holds it: filters with the names of the API, the time range, and how
// the list is shown. Parsing never throws, writing is canonical (sorted, defaults left out), and
// parameters that the list does not know stay in the URL without being sent to the API.
import { filterNamed } from './filters.ts';

export const RANGES = ['1h', '6h', '24h', '7d', '30d', '90d'] as const;
export type Range = (typeof RANGES)[number];
const DEFAULT_RANGE: Range = '24h';

export const SORTS = ['started_at', 'duration_ms', 'cost_usd', 'tokens'] as const;
export type Sort = (typeof SORTS)[number];
const DEFAULT_SORT: Sort = 'started_at';

/** Values that one filter holds at most, as in the API. */
const VALUES_MAX = 50;

/** Either the last hours or days up to now, or two fixed times of which one may be open. */
export type TimeRange = { last: Range } | { since: string | null; until: string | null };

/** Values by parameter name, for instance not_tags. Lists are sorted and hold each value once. */
export type Filters = ReadonlyMap<string, readonly string[]>;

export interface ListUrl {
  filters: Filters;
  time: TimeRange;
  sort: Sort;
  /** Names of the columns that are shown; null for those of the person. */
  cols: readonly string[] | null;
  /** The trace that is shown beside the list. */
  peek: string | null;
  live: boolean;
  /** The saved view that the list began with. */
  view: string | null;
  /** Parameters that the list does not know, sorted. */
  rest: readonly (readonly [string, string])[];
}

export const EMPTY_LIST: ListUrl = {
  filters: new Map(),
  time: { last: DEFAULT_RANGE },
  sort: DEFAULT_SORT,
  cols: null,
  peek: null,
  live: false,
  view: null,
  rest: [],
};

const OWN = new Set(['t', 'since', 'until', 'sort', 'cols', 'peek', 'live', 'view']);

/** Returns the state that a query string holds; what it does not hold has its default. */
export function parseListUrl(query: string): ListUrl {
  const params = new URLSearchParams(query);
  const filters = new Map<string, readonly string[]>();
  const rest: [string, string][] = [];
  for (const name of new Set(params.keys())) {
    const values = params.getAll(name);
    if (filterNamed(name) !== null) {
      const kept = filterValues(name, isList(name) ? values.flatMap(splitValues) : values);
      if (kept.length > 0) filters.set(name, kept);
    } else if (!OWN.has(name)) rest.push(...values.map((value): [string, string] => [name, value]));
  }
  return {
    filters: sortedByName(filters),
    time: timeOf(params),
    sort: oneOf(SORTS, params.get('sort')) ?? DEFAULT_SORT,
    cols: listOf(params.get('cols')),
    peek: filled(params.get('peek')),
    live: params.get('live') === '1',
    view: filled(params.get('view')),
    rest: rest.toSorted(([a, x], [b, y]) => compare(a, b) || compare(x, y)),
  };
}

/** Returns the canonical query string of a state, without the question mark. */
export function writeListUrl(state: ListUrl): string {
  const pairs: [string, string][] = [...state.filters].map(([name, values]) => [name, joinValues(name, values)]);
  if ('last' in state.time) {
    if (state.time.last !== DEFAULT_RANGE) pairs.push(['t', state.time.last]);
  } else {
    if (state.time.since !== null) pairs.push(['since', state.time.since]);
    if (state.time.until !== null) pairs.push(['until', state.time.until]);
  }
  if (state.sort !== DEFAULT_SORT) pairs.push(['sort', state.sort]);
  if (state.cols !== null) pairs.push(['cols', state.cols.join(',')]);
  if (state.peek !== null) pairs.push(['peek', state.peek]);
  if (state.live) pairs.push(['live', '1']);
  if (state.view !== null) pairs.push(['view', state.view]);
  pairs.push(...state.rest.map(([name, value]): [string, string] => [name, value]));
  return pairs
    .toSorted(([a], [b]) => compare(a, b))
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .join('&');
}

/** Returns the state with one filter set to these values; no value removes it. */
export function withFilter(state: ListUrl, name: string, values: readonly string[]): ListUrl {
  const filters = new Map(state.filters);
  const kept = filterValues(name, values);
  if (kept.length > 0) filters.set(name, kept);
  else filters.delete(name);
  return { ...state, filters: sortedByName(filters) };
}

/** Returns true if both states ask the API for the same traces in the same order. */
export function sameQuery(a: ListUrl, b: ListUrl): boolean {
  const shown = { cols: null, peek: null, live: false, view: null, rest: [] };
  return writeListUrl({ ...a, ...shown }) === writeListUrl({ ...b, ...shown });
}

function filterValues(name: string, values: readonly string[]): string[] {
  const filled = values.map((value) => value.toWellFormed()).filter((value) => value.trim() !== '');
  return isList(name) ? [...new Set(filled)].slice(0, VALUES_MAX).toSorted(compare) : filled.slice(0, 1);
}

const isList = (name: string): boolean => filterNamed(name)?.spec.multiple === true;

/** Splits at commas as the API does: a comma or a backslash within a value has a backslash before it. */
function splitValues(text: string): string[] {
  const parts = text.match(/(?:\\[^]|[^,\\]|\\$)+/g) ?? [];
  return parts.map((part) => part.replaceAll(/\\([,\\])/g, '$1'));
}

/** Returns the value as it stands in a list of values. */
export const escapedValue = (value: string): string => value.replaceAll(/[,\\]/g, String.raw`\$&`);

/** Returns the text of a parameter with these values. */
const joinValues = (name: string, values: readonly string[]): string =>
  isList(name) ? values.map(escapedValue).join(',') : values.join(',');

function timeOf(params: URLSearchParams): TimeRange {
  const since = instant(params.get('since'));
  const until = instant(params.get('until'));
  if (since !== null || until !== null) return { since, until };
  return { last: oneOf(RANGES, params.get('t')) ?? DEFAULT_RANGE };
}

/** Returns the time in UTC with milliseconds, or null if the text is not a time. */
function instant(text: string | null): string | null {
  if (text === null) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

function listOf(text: string | null): string[] | null {
  if (text === null) return null;
  const parts = text.split(',').filter((part) => part !== '');
  return parts.length === 0 ? null : [...new Set(parts)];
}

const filled = (text: string | null): string | null => (text === null || text === '' ? null : text.toWellFormed());

export function oneOf<T extends string>(names: readonly T[], text: string | null): T | null {
  return names.find((name) => name === text) ?? null;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function sortedByName(filters: ReadonlyMap<string, readonly string[]>): Filters {
  return new Map([...filters].toSorted(([a], [b]) => compare(a, b)));
}

/** Percent-encodes a part but for commas, colons and slashes, which a query string may hold as they are. */
function encoded(part: string): string {
  return encodeURIComponent(part.toWellFormed()).replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll('%2F', '/');
}
