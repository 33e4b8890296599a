// Counts traces by the values of fields: takes the filters of the list and the fields, returns the
// commonest values of each field with their counts. Each field is counted under all filters but its
// own, so that the other values of a filtered field can be chosen. Fields that are counted under
// the same filters share one pass over the traces, and another over the spans. Of more than half a million
// matching traces a part is counted, which stands for all; the field then says that it is approximate.
// The reads run beside each other within bounds of time and memory; a field that is not counted within
// them is returned as partial.
import type { z } from 'zod';
import { inParallel } from '../../../ops/platform/in_parallel.ts';
import { type ClickHouse, isExhausted } from '../../../sql/client/client.ts';
import type { QueryOptions } from '../../../sql/client/query.ts';
import type { Facet, FacetField, facetsMeta, FacetsQuery } from './facet_schema.ts';
import { countPeriods, type Part, partOf, scaleOf, tracesOf } from './facet_part.ts';
import {
  readDescribedAtOnce,
  readDescribedValues,
  readFacetValues,
  readScoreValues,
  readSpanValues,
  readSums,
  readUndescribed,
  readUntagged,
  readVerdicts,
} from './facet_store.ts';
import { filtersOf, isFiltered, isGiven, type ListFilters } from './filters.ts';
import { foundOnce, INDEXED_SET_MAX } from './found_once.ts';
import type { WordsDeps } from './words.ts';
import { withoutNeedlessReads } from './undescribed.ts';

/** Values of a field. */
const VALUES_MAX = 50;
/** Reads that run at a time. */
const READS_AT_ONCE = 4;
/**
 * Bounds of all fields together, and of each read. All fields of 300,000 traces take 0.14 s on two
 * cores.
 */
const BOUNDS: FacetBounds = { ms: 3000, memoryBytesMax: 250_000_000, tracesCountedMax: 500_000 };
/**
 * Traces that only their spans describe: fields of spans are counted in this many at most, and
 * estimated from one in 2, 4, 8, … if there are more.
 */
const UNDESCRIBED_COUNTED_MAX = 40_000;

/** Traces that filters leave, up to which one pass that looks at all their lists costs less than a pass for each. */
const AT_ONCE_MAX = 250_000;

/** Column of the sums that has the values of a field. */
const SUMS = {
  outcome: 'outcome',
  agent_id: 'agent_id',
  root_span_name: 'root_span_name',
  sampled: 'kept',
  duration_ms: 'duration_from',
  cost_usd: 'cost_from',
  tokens: 'tokens_from',
} as const;
const OF_SPANS = { model: 'model', source_format: 'source_format', department: 'department', realm: 'realm' } as const;
type SumField = keyof typeof SUMS;
type SpanField = keyof typeof OF_SPANS;
const isSum = (field: FacetField): field is SumField => field in SUMS;
const isOfSpans = (field: FacetField): field is SpanField => field in OF_SPANS;

/** Filters that a field is counted without, where they are not named as the field is. */
const OWN_FILTERS: Partial<Record<FacetField, readonly (keyof ListFilters)[]>> = {
  duration_ms: ['min_duration_ms', 'max_duration_ms'],
  cost_usd: ['min_cost_usd', 'max_cost_usd'],
  tokens: ['min_tokens', 'max_tokens'],
  verdict: ['judged', 'judge_id', 'verdict', 'not_judge_id', 'not_verdict'],
  score: ['scores', 'not_scores'],
};

/** Beginnings of the ranges of a histogram: 0, and 1, 2 and 5 of each power of ten. */
const edgesOf = (from: number, to: number): number[] => [
  0,
  ...Array.from({ length: to - from + 1 }, (_, i) => [1, 2, 5].map((step) => Number(`${step}e${from + i}`))).flat(),
];
const WHOLE_EDGES = edgesOf(0, 12);
const COST_EDGES = edgesOf(-6, 6);
const EDGES: Partial<Record<FacetField, readonly number[]>> = {
  duration_ms: WHOLE_EDGES,
  cost_usd: COST_EDGES,
  tokens: WHOLE_EDGES,
};

export interface FacetsDeps extends WordsDeps {
  /** Milliseconds since the epoch. */
  now: () => number;
}

export interface FacetBounds {
  /** Milliseconds for all fields. */
  ms: number;
  /** Engine memory for each read, bytes. */
  memoryBytesMax: number;
  /** Matching traces: fields are counted in about this many, and estimated from them if there are more. */
  tracesCountedMax: number;
}

/** One read and the fields that it counts. */
interface FacetRead {
  fields: readonly FacetField[];
  run: () => Promise<Partial<Facet>[]>;
}

/** Serves GET /v1/traces/facets. */
export async function countFacets(
  deps: FacetsDeps,
  orgId: string,
  query: FacetsQuery,
  signal: AbortSignal,
  bounds: FacetBounds = BOUNDS,
): Promise<{ data: Facet[]; meta: z.infer<typeof facetsMeta> }> {
  const timeout = AbortSignal.timeout(bounds.ms);
  const options = {
    signal: AbortSignal.any([signal, timeout]),
    memoryBytesMax: bounds.memoryBytesMax,
    indexedSetMax: INDEXED_SET_MAX,
  };
  const found = new Map<FacetField, Partial<Facet>>();
  const within = async <T>(read: Promise<T>): Promise<T | null> => {
    try {
      return await read;
    } catch (error) {
      if (!signal.aborted && (timeout.aborted || isExhausted(error))) return null;
      throw error;
    }
  };
  const { clickhouse } = deps;
  const asked = filtersOf(orgId, query);
  const described = (await within(withoutNeedlessReads(clickhouse, asked, options))) ?? asked;
  const filters = (await within(foundOnce(deps, described, options))) ?? described;
  const periods = await within(countPeriods(clickhouse, filters, deps.now(), options));
  const part = periods === null ? null : partOf(clickhouse, filters, periods, bounds.tracesCountedMax, options);
  const total = periods === null ? null : tracesOf(periods);
  const few = total !== null && total <= AT_ONCE_MAX && isFiltered(filters);
  const context: Context = { clickhouse, filters, part, few, options, within };
  const sums = sharedSums(context, query.fields);
  await inParallel(readsOf(context, query.fields, sums), READS_AT_ONCE, async ({ fields, run }) => {
    for (const [index, facet] of ((await within(run())) ?? []).entries()) found.set(fields[index] as FacetField, facet);
  });
  const data = query.fields.map((field): Facet => {
    const facet = found.get(field) ?? { ...(field in EDGES ? { buckets: [] } : { values: [] }), partial: true };
    return { field, approximate: false, partial: false, ...facet };
  });
  return { data, meta: { total, partial: total === null || data.some(({ partial }) => partial) } };
}

interface Context {
  clickhouse: ClickHouse;
  filters: ListFilters;
  /** The part of the traces in which fields are counted; null if all traces are. */
  part: Part | null;
  /** Whether filters leave at most AT_ONCE_MAX traces. */
  few: boolean;
  options: QueryOptions;
  /** Resolves with null if the read exceeds the bounds. */
  within: <T>(read: Promise<T>) => Promise<T | null>;
}

/** The fields that are counted in one pass. */
interface Sums {
  facets: Partial<Facet>[];
  /** Traces without tags; undefined unless asked for. */
  untagged: number | undefined;
}

/** The pass over the traces under all filters, which runs once. */
interface SharedSums {
  fields: readonly SumField[];
  counted: () => Promise<Sums>;
}

const ownFilters = (field: FacetField) => OWN_FILTERS[field] ?? ([field, `not_${field}`] as (keyof ListFilters)[]);
const isOwnGiven = ({ filters }: Context, field: FacetField): boolean =>
  ownFilters(field).some((name) => isGiven(filters[name]));

/** Returns the pass that counts the sums under all filters; null if no asked field is one of them. */
function sharedSums(context: Context, asked: readonly FacetField[]): SharedSums | null {
  const fields = asked.filter(isSum).filter((field) => !isOwnGiven(context, field));
  if (fields.length === 0) return null;
  const by_untagged = asked.includes('tags') && !isOwnGiven(context, 'tags') ? true : undefined;
  let counted: Promise<Sums> | null = null;
  return { fields, counted: () => (counted ??= countSums(context, fields, by_untagged)) };
}

/** Returns the reads that count the fields. */
function readsOf(context: Context, fields: readonly FacetField[], sums: SharedSums | null): FacetRead[] {
  const { filters } = context;
  const without = (field: FacetField): Context => ({
    ...context,
    part: null,
    filters: { ...filters, ...Object.fromEntries(ownFilters(field).map((name) => [name, undefined])) },
  });
  const alone = <F extends FacetField>(
    among: readonly F[],
    run: (context: Context, fields: readonly F[]) => Promise<Partial<Facet>[]>,
  ): FacetRead[] =>
    among
      .filter((field) => isOwnGiven(context, field))
      .map((field) => ({ fields: [field], run: () => run(without(field), [field]) }));
  const ofSpans = fields.filter(isOfSpans);
  const together = ofSpans.filter((field) => !isOwnGiven(context, field));
  const others = fields.filter((field) => !isSum(field) && !isOfSpans(field));
  return [
    ...(together.length === 0 ? [] : [{ fields: together, run: () => countSpanValues(context, together) }]),
    ...alone(ofSpans, countSpanValues),
    ...(sums === null ? [] : [{ fields: sums.fields, run: async () => (await sums.counted()).facets }]),
    ...alone(fields.filter(isSum), async (own, [field]) => (await countSums(own, [field as SumField])).facets),
    ...others.map((field) => {
      const own = isOwnGiven(context, field) ? without(field) : context;
      return { fields: [field], run: async () => [await countOne(own, field, sums)] };
    }),
  ];
}

/** Counts one field by itself. */
async function countOne(context: Context, field: FacetField, sums: SharedSums | null): Promise<Partial<Facet>> {
  const { clickhouse, filters, part, options } = context;
  if (field === 'verdict') return { values: await readVerdicts(clickhouse, { ...filters, rows: VALUES_MAX }, options) };
  if (field === 'score') {
    const rows = await readScoreValues(clickhouse, { ...filters, rows: VALUES_MAX }, options);
    return { values: rows.map(({ name, value, traces }) => ({ value: `${name}:eq:${value}`, name, traces })) };
  }
  const flags = { [`by_${field}`]: true, slices: part?.slices };
  const [{ scaled, approximate }, rows, untagged] = await Promise.all([
    scaleOf(part),
    readFacetValues(clickhouse, { ...filters, ...flags, rows: VALUES_MAX + 1 }, options),
    field === 'tags' ? countUntagged(context, sums) : 0,
  ]);
  const all = rows.map(({ value, traces }) => ({ value, traces: scaled(traces) }));
  const { other, ...facet } = valuesOf(all, scaled(rows[0]?.total ?? 0));
  return field === 'tags' ? { ...facet, without: untagged, approximate } : { ...facet, other, approximate };
}

/** Counts the traces without tags by a read of its own, unless the shared pass counts them. */
async function countUntagged({ clickhouse, filters, part, options, within }: Context, sums: SharedSums | null) {
  const shared = sums === null ? null : await within(sums.counted());
  if (shared?.untagged !== undefined) return shared.untagged;
  const [[row], { scaled }] = await Promise.all([
    readUntagged(clickhouse, { ...filters, slices: part?.slices }, options),
    scaleOf(part),
  ]);
  return scaled(row?.traces ?? 0);
}

/** Returns the values of a field that a trace has at most one of. @param total traces of all values */
function valuesOf(rows: readonly { value: string; traces: number }[], total: number) {
  const values = rows
    .filter(({ value }) => value !== '')
    .slice(0, VALUES_MAX)
    .map(({ value, traces }) => ({ value, traces }));
  const without = rows.find(({ value }) => value === '')?.traces ?? 0;
  const other = values.reduce((left, { traces }) => left - traces, total - without);
  return { values, without, other };
}

const flagsOf = (fields: readonly FacetField[]) => Object.fromEntries(fields.map((field) => [`by_${field}`, true]));

async function countSums(
  { clickhouse, filters, part, options }: Context,
  fields: readonly SumField[],
  by_untagged?: true,
): Promise<Sums> {
  const edges = { whole_edges: WHOLE_EDGES, cost_edges: COST_EDGES };
  const flags = { ...flagsOf(fields), by_untagged, slices: part?.slices };
  const [{ scaled, approximate }, counted] = await Promise.all([
    scaleOf(part),
    readSums(clickhouse, { ...filters, ...flags, ...edges, rows: VALUES_MAX + 1 }, options),
  ]);
  const rows = counted.map((row) => ({ ...row, traces: scaled(row.traces) }));
  const columns = Object.values(SUMS);
  const all = rows.find((row) => columns.every((column) => (row[column] ?? null) === null));
  const total = all?.traces ?? 0;
  const facets = fields.map((field) => {
    const own = rows.flatMap((row) => {
      const value = row[SUMS[field]] ?? null;
      return value === null ? [] : [{ value, traces: row.traces }];
    });
    const bounds = EDGES[field];
    if (bounds === undefined) {
      const values = own.map(({ value, traces }) => ({ value: String(value), traces }));
      return { ...valuesOf(values, total), approximate };
    }
    const buckets = own.map(({ value, traces }) => ({
      from: Number(value),
      to: bounds.find((edge) => edge > Number(value)) ?? null,
      traces,
    }));
    return { buckets: buckets.sort((a, b) => a.from - b.from), approximate };
  });
  return { facets, untagged: by_untagged === true ? scaled(all?.untagged ?? 0) : undefined };
}

async function countSpanValues(context: Context, fields: readonly SpanField[]): Promise<Partial<Facet>[]> {
  const { clickhouse, filters, part, few, options } = context;
  const asked = { ...filters, ...flagsOf(fields), rows: VALUES_MAX };
  const [{ scaled, approximate: isPart }, counted, undescribed] = await Promise.all([
    scaleOf(part),
    few && fields.length > 1
      ? readDescribedAtOnce(clickhouse, asked, options)
      : readDescribedValues(clickhouse, { ...asked, slices: part?.slices }, options),
    countUndescribed(context, fields),
  ]);
  const described = counted.map((row) => ({ ...row, traces: scaled(row.traces) }));
  return fields.map((field) => {
    const counts = new Map<string, number>();
    for (const row of [...described, ...undescribed.rows])
      if (row.field === field) counts.set(row.value, (counts.get(row.value) ?? 0) + row.traces);
    const values = [...counts].map(([value, traces]) => ({ value, traces }));
    const approximate = isPart || undescribed.share > 1 || (undescribed.rows.length > 0 && values.length > VALUES_MAX);
    return { values: values.sort((a, b) => b.traces - a.traces).slice(0, VALUES_MAX), approximate };
  });
}

/** Counts fields of spans among the traces that only their spans describe. */
async function countUndescribed(
  { clickhouse, filters, options }: Context,
  fields: readonly SpanField[],
): Promise<{ rows: { field: SpanField; value: string; traces: number }[]; share: number }> {
  const [{ traces: total } = { traces: 0 }] = await readUndescribed(clickhouse, filters, options);
  if (total === 0) return { rows: [], share: 1 };
  let share = 1;
  while (total / share > UNDESCRIBED_COUNTED_MAX) share *= 2;
  const rows = await readSpanValues(clickhouse, { ...filters, ...flagsOf(fields), share, rows: VALUES_MAX }, options);
  return {
    share,
    rows: fields.flatMap((field) =>
      rows.flatMap((row) => {
        const value = row[OF_SPANS[field]] ?? null;
        return value === null ? [] : [{ field, value, traces: row.traces }];
      }),
    ),
  };
}
