// The monitor that the editor works on: its fields as they are typed, the body of a request made of
// them, and what they lack. Pure.
import type { components, paths } from '../../client/contract.d.ts';

export type Monitor = components['schemas']['Monitor'];
export type AnalyticsView = components['schemas']['AnalyticsSchema']['views'][number];
export type MonitorBody = paths['/v1/monitors']['post']['requestBody']['content']['application/json'];
export type PreviewBody = paths['/v1/monitors/preview']['post']['requestBody']['content']['application/json'];
type Query = MonitorBody['query'];
type QueryFilter = NonNullable<Query['filters']>[number];
export type View = Query['view'];
export type Agg = NonNullable<Query['measures'][number]['agg']>;
export type Op = NonNullable<QueryFilter['op']>;
export type Severity = Monitor['severity'];

export const VIEWS: readonly View[] = ['spans', 'traces', 'scores'];
const OPS: readonly Op[] = ['eq', 'ne', 'in', 'not_in', 'gt', 'gte', 'lt', 'lte', 'exists'];
export const SEVERITIES: readonly Severity[] = ['info', 'warning', 'critical'];
/** A filter as it is typed; the values of `in` and `not_in` are separated by commas. */
export interface DraftFilter {
  field: string;
  op: Op;
  value: string;
}

export interface Draft {
  name: string;
  view: View;
  measure: string;
  agg: Agg;
  /** Empty: no groups. */
  group_by: string;
  filters: readonly DraftFilter[];
  window: string;
  side: 'above' | 'below';
  limit: string;
  lasts: string;
  severity: Severity;
  /** Endpoints that receive the changes of this monitor, subscribed or not. */
  endpoints: readonly string[];
  /** Addresses, separated by commas. */
  emails: string;
  enabled: boolean;
}

export const EMPTY_DRAFT: Draft = {
  name: '',
  view: 'spans',
  measure: 'error_rate',
  agg: 'avg',
  group_by: '',
  filters: [],
  window: '15',
  side: 'above',
  limit: '',
  lasts: '0',
  severity: 'warning',
  endpoints: [],
  emails: '',
  enabled: true,
};

const AGGS: readonly Agg[] = ['sum', 'avg', 'min', 'max', 'p50', 'p75', 'p90', 'p95', 'p99', 'uniq'];
const opOf = (text: unknown): Op => OPS.find((op) => op === text) ?? 'eq';
export const aggOf = (text: unknown): Agg => AGGS.find((agg) => agg === text) ?? 'sum';
export const viewOf = (text: unknown): View => VIEWS.find((view) => view === text) ?? 'spans';

/** Returns the draft for a stored monitor. */
export function draftOf(monitor: Monitor): Draft {
  const { query, threshold, channels } = monitor;
  const [measure] = query.measures;
  return {
    ...EMPTY_DRAFT,
    name: monitor.name,
    view: viewOf(query.view),
    measure: measure?.measure ?? '',
    agg: aggOf(measure?.agg),
    group_by: monitor.group_by[0] ?? '',
    filters: query.filters.map(filterOf),
    window: String(monitor.window_minutes),
    side: 'above' in threshold ? 'above' : 'below',
    limit: String('above' in threshold ? threshold.above : threshold.below),
    lasts: String(monitor.for_minutes),
    severity: monitor.severity,
    endpoints: channels.flatMap(({ webhook_id }) => (typeof webhook_id === 'string' ? [webhook_id] : [])),
    emails: channels.flatMap(({ to }) => (Array.isArray(to) ? to.map(String) : [])).join(', '),
    enabled: monitor.enabled,
  };
}

function filterOf({ field, op, value }: { field: string; op?: string; value?: unknown }): DraftFilter {
  return { field, op: opOf(op), value: [value].flat().map(textOf).join(', ') };
}

const textOf = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : '';

/** Returns the items of a comma-separated text. */
export const itemsOf = (text: string): string[] => [
  ...new Set(
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  ),
];

/**
 * Returns the filter of a request.
 * @param numbers fields of the view that hold numbers
 */
function filterBody({ field, op, value }: DraftFilter, numbers: readonly string[]): QueryFilter {
  const isNumber = numbers.includes(field) || ['gt', 'gte', 'lt', 'lte'].includes(op);
  const one = (text: string): string | number => (isNumber ? Number(text) : text);
  if (op === 'exists') return { field, op, value: value !== 'false' };
  return { field: field.trim(), op, value: op === 'in' || op === 'not_in' ? itemsOf(value).map(one) : one(value) };
}

/** Returns what a preview asks; the draft lacks nothing. */
export function previewBody(draft: Draft, numbers: readonly string[], hours: number): PreviewBody {
  return {
    query: {
      view: draft.view,
      measures: [{ measure: draft.measure, agg: draft.agg }],
      filters: draft.filters.map((filter) => filterBody(filter, numbers)),
    },
    group_by: draft.group_by === '' ? [] : [draft.group_by],
    window_minutes: Number(draft.window),
    threshold: { [draft.side]: Number(draft.limit) },
    for_minutes: Number(draft.lasts),
    hours,
  };
}

/** Returns the body that stores the monitor; the draft lacks nothing. */
export function bodyOf(draft: Draft, numbers: readonly string[]): MonitorBody {
  const { hours: _, ...measured } = previewBody(draft, numbers, 1);
  const to = itemsOf(draft.emails);
  return {
    ...measured,
    name: draft.name.trim(),
    severity: draft.severity,
    enabled: draft.enabled,
    channels: [
      ...draft.endpoints.map((webhook_id) => ({ type: 'webhook' as const, webhook_id })),
      ...(to.length === 0 ? [] : [{ type: 'email' as const, to }]),
    ],
  };
}

/** Errors by the name of the field in the API. */
export type DraftErrors = Readonly<Record<string, string>>;
const MINUTES_MAX = 1440;

/** Returns what the draft lacks before the API can evaluate it; empty when it lacks nothing. */
export function missingIn(draft: Draft): DraftErrors {
  const errors: Record<string, string> = {};
  const minutes = (field: string, text: string, least: number): void => {
    const value = /^\d{1,4}$/.test(text.trim()) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= MINUTES_MAX))
      errors[field] = `Enter a whole number from ${least} to ${MINUTES_MAX}.`;
  };
  minutes('window_minutes', draft.window, 1);
  minutes('for_minutes', draft.lasts, 0);
  if (draft.limit.trim() === '' || !Number.isFinite(Number(draft.limit))) errors['threshold'] = 'Enter a number.';
  if (draft.measure === '') errors['measure'] = 'Choose a measure.';
  for (const [at, { field, op, value }] of draft.filters.entries())
    if (field.trim() === '' || (value.trim() === '' && op !== 'exists'))
      errors[`filters[${at}]`] = field.trim() === '' ? 'Choose a field.' : 'Enter a value.';
  return errors;
}

/** Returns the draft that an address begins; what it does not name, or names wrongly, has its default. */
export function draftFrom(search: string): Draft {
  const query = new URLSearchParams(search);
  const text = (name: keyof Draft, fallback: string): string => query.get(name) ?? fallback;
  const view = viewOf(query.get('view'));
  return {
    ...EMPTY_DRAFT,
    name: text('name', ''),
    view,
    measure: text('measure', EMPTY_DRAFT.measure),
    agg: query.has('agg') ? aggOf(query.get('agg')) : EMPTY_DRAFT.agg,
    group_by: text('group_by', ''),
    window: text('window', EMPTY_DRAFT.window),
    side: text('side', 'above') === 'below' ? 'below' : 'above',
    limit: text('limit', ''),
    filters: filtersFrom(query.get('filters')),
  };
}

function filtersFrom(text: string | null): DraftFilter[] {
  try {
    const parsed: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(parsed) ? parsed.filter(isFilter).map(filterOf) : [];
  } catch {
    return [];
  }
}

const isFilter = (value: unknown): value is { field: string; op?: string; value?: unknown } =>
  typeof value === 'object' && value !== null && 'field' in value && typeof value.field === 'string';
