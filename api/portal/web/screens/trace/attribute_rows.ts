// The attributes of a span as rows of a table, and the list of traces that each value leads to. Pure.
import { attributeParameter } from '../../lists/filters.ts';
import { EMPTY_LIST, RANGES, type TimeRange, withFilter, writeListUrl } from '../../lists/list_url.ts';

const DEPTH_MAX = 12;
/** Longer values are no filter: the address could not hold them. */
const FILTER_CHARS_MAX = 500;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Relative ranges that a list of a trace opens with, the shortest first. */
const OPENING_RANGES = RANGES.filter((range) => range.endsWith('d') || range === '24h');

/** A filter of the list of traces. */
export interface ListFilter {
  name: string;
  values: readonly string[];
}

export interface AttributeRow {
  /** Names of keys, separated by dots. */
  path: string;
  value: string;
  /** The filter that finds traces with this value; null where the API has none. */
  filter: ListFilter | null;
}

export interface SpanAttributes {
  tags: readonly string[];
  agent_id: string | null;
  source_format: string;
  price_source: string | null;
  event_id: string | null;
  attributes: Readonly<Record<string, unknown>>;
}

/** Returns the rows of a span; empty values have none. */
export function attributeRows(span: SpanAttributes): AttributeRow[] {
  const { tags, agent_id, source_format, price_source, event_id, attributes } = span;
  const own: AttributeRow[] = [
    { path: 'tags', value: tags.join(', '), filter: { name: 'tags', values: tags } },
    { path: 'agent_id', value: agent_id ?? '', filter: { name: 'agent_id', values: [agent_id ?? ''] } },
    { path: 'source_format', value: source_format, filter: { name: 'source_format', values: [source_format] } },
    { path: 'price_source', value: price_source ?? '', filter: null },
    { path: 'event_id', value: event_id ?? '', filter: null },
  ];
  return [...own, ...flatten(attributes)].filter(({ value }) => value !== '');
}

/** Returns the values below an object with their paths, such as outcomes.tickets. */
function flatten(value: unknown): AttributeRow[] {
  const rows: AttributeRow[] = [];
  const stack: [string, unknown, number][] = [['', value, 0]];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const [path, item, depth] = next;
    const isOpen = typeof item === 'object' && item !== null && !Array.isArray(item) && depth < DEPTH_MAX;
    if (isOpen)
      for (const [key, below] of Object.entries(item).reverse())
        stack.push([path === '' ? key : `${path}.${key}`, below, depth + 1]);
    else rows.push({ path, value: textOf(item), filter: filterOf(path, item) });
  }
  return rows;
}

const textOf = (item: unknown): string => (typeof item === 'string' ? item : JSON.stringify(item ?? null));

function filterOf(path: string, item: unknown): ListFilter | null {
  const name = attributeParameter(path);
  const isScalar = typeof item === 'string' || typeof item === 'number' || typeof item === 'boolean';
  const value = textOf(item);
  if (name === null || !isScalar || value.trim() === '' || value.length > FILTER_CHARS_MAX) return null;
  return { name, values: [value] };
}

/**
 * Returns the path of the list of traces with a filter, over a time that holds the trace that it came from.
 * @param startedAt start of that trace
 */
export function filteredListPath(org_id: string, { name, values }: ListFilter, startedAt: string, now: number): string {
  const state = { ...EMPTY_LIST, time: timeThatHolds(Date.parse(startedAt), now) };
  return `/o/${encodeURIComponent(org_id)}/traces?${writeListUrl(withFilter(state, name, values))}`;
}

function timeThatHolds(start: number, now: number): TimeRange {
  const last = OPENING_RANGES.find((range) => now - start < msOf(range) - HOUR_MS);
  if (last !== undefined || Number.isNaN(start)) return { last: last ?? '90d' };
  return { since: new Date(start - DAY_MS).toISOString(), until: null };
}

const msOf = (range: string): number => Number.parseInt(range, 10) * (range.endsWith('h') ? HOUR_MS : DAY_MS);
