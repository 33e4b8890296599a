// Counts traces by the values of fields: takes the filters of the list and the fields, returns the
// commonest values of each field with their counts. Each field is counted under all filters but its
// own, so that the other values of a filtered field can be chosen. Fields that are counted under
// the same filters share one pass over the traces, and another over the spans. The reads run beside
// each other within a bound of time; a field that is not counted by then is returned as partial.
import type { z } from 'zod';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { Facet, FacetField, facetsMeta, FacetsQuery } from './facet_schema.ts';
import {
  readFacetValues,
  readScoreValues,
  readSpanValues,
  readSums,
  readUntagged,
  readVerdicts,
} from './facet_store.ts';
import { filtersOf, isGiven, type ListFilters } from './filters.ts';
import { readTotal } from './store.ts';

/** Values of a field. */
const VALUES_MAX = 50;
/** Reads that run at a time. */
const READS_AT_ONCE = 4;
/** Time for all fields. */
const FACETS_MS = 3000;
/**
 * Fields of spans are counted in this many traces at most, and estimated from one in 2, 4, 8, … if
 * there are more.
 */
const COUNTED_TRACES_MAX = 40_000;

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

/** One read and the fields that it counts. */
interface FacetRead {
  fields: readonly FacetField[];
  run: () => Promise<Partial<Facet>[]>;
}

/** Serves GET /v1/traces/facets. */
export async function countFacets(
  clickhouse: ClickHouse,
  orgId: string,
  query: FacetsQuery,
  signal: AbortSignal,
): Promise<{ data: Facet[]; meta: z.infer<typeof facetsMeta> }> {
  const filters = filtersOf(orgId, query);
  const total = readTotal(clickhouse, filters, { signal }).then(([counted]) => counted?.total ?? 0);
  const timeout = AbortSignal.timeout(FACETS_MS);
  const context = { clickhouse, filters, signal: AbortSignal.any([signal, timeout]) };
  const found = new Map<FacetField, Partial<Facet>>();
  const reads = inParallel(readsOf(context, query.fields), READS_AT_ONCE, async ({ fields, run }) => {
    try {
      for (const [index, facet] of (await run()).entries()) found.set(fields[index] as FacetField, facet);
    } catch (error) {
      if (!timeout.aborted || signal.aborted) throw error;
    }
  });
  const [all] = await Promise.all([total, reads]);
  const data = query.fields.map((field): Facet => {
    const facet = found.get(field) ?? { ...(field in EDGES ? { buckets: [] } : { values: [] }), partial: true };
    return { field, approximate: false, partial: false, ...facet };
  });
  return { data, meta: { total: all, partial: data.some(({ partial }) => partial) } };
}

interface Context {
  clickhouse: ClickHouse;
  filters: ListFilters;
  signal: AbortSignal;
}

/** Returns the reads that count the fields. */
function readsOf(context: Context, fields: readonly FacetField[]): FacetRead[] {
  const { filters } = context;
  const own = (field: FacetField) => OWN_FILTERS[field] ?? ([field, `not_${field}`] as (keyof ListFilters)[]);
  const isOwnGiven = (field: FacetField): boolean => own(field).some((name) => isGiven(filters[name]));
  const without = (field: FacetField): Context => ({
    ...context,
    filters: { ...filters, ...Object.fromEntries(own(field).map((name) => [name, undefined])) },
  });
  const shared = <F extends FacetField>(
    among: readonly F[],
    run: (context: Context, fields: readonly F[]) => Promise<Partial<Facet>[]>,
  ): FacetRead[] => {
    const together = among.filter((field) => !isOwnGiven(field));
    return [
      ...(together.length === 0 ? [] : [{ fields: together, run: () => run(context, together) }]),
      ...among.filter(isOwnGiven).map((field) => ({ fields: [field], run: () => run(without(field), [field]) })),
    ];
  };
  const others = fields.filter((field) => !isSum(field) && !isOfSpans(field));
  return [
    ...shared(fields.filter(isOfSpans), countSpanValues),
    ...shared(fields.filter(isSum), countSums),
    ...others.map((field) => ({ fields: [field], run: async () => [await countOne(without(field), field)] })),
  ];
}

/** Counts one field by itself. */
async function countOne({ clickhouse, filters, signal }: Context, field: FacetField): Promise<Partial<Facet>> {
  if (field === 'verdict')
    return { values: await readVerdicts(clickhouse, { ...filters, rows: VALUES_MAX }, { signal }) };
  if (field === 'score') {
    const rows = await readScoreValues(clickhouse, { ...filters, rows: VALUES_MAX }, { signal });
    return { values: rows.map(({ name, value, traces }) => ({ value: `${name}:eq:${value}`, name, traces })) };
  }
  const [rows, [untagged]] = await Promise.all([
    readFacetValues(clickhouse, { ...filters, [`by_${field}`]: true, rows: VALUES_MAX + 1 }, { signal }),
    field === 'tags' ? readUntagged(clickhouse, filters, { signal }) : [],
  ]);
  const { other, ...facet } = valuesOf(rows, rows[0]?.total ?? 0);
  return field === 'tags' ? { ...facet, without: untagged?.traces ?? 0 } : { ...facet, other };
}

/** Returns the values of a field that a trace has at most one of. @param total traces of all values */
function valuesOf(rows: readonly { value: string; traces: number }[], total: number) {
  const values = rows
    .filter(({ value }) => value !== '')
    .slice(0, VALUES_MAX)
    .map(({ value, traces }) => ({ value, traces }));
  const without = rows.find(({ value }) => value === '')?.traces ?? 0;
  return { values, without, other: values.reduce((left, { traces }) => left - traces, total - without) };
}

const flagsOf = (fields: readonly FacetField[]) => Object.fromEntries(fields.map((field) => [`by_${field}`, true]));

async function countSums(
  { clickhouse, filters, signal }: Context,
  fields: readonly SumField[],
): Promise<Partial<Facet>[]> {
  const edges = { whole_edges: WHOLE_EDGES, cost_edges: COST_EDGES };
  const rows = await readSums(
    clickhouse,
    { ...filters, ...flagsOf(fields), ...edges, rows: VALUES_MAX + 1 },
    { signal },
  );
  const columns = Object.values(SUMS);
  const total = rows.find((row) => columns.every((column) => (row[column] ?? null) === null))?.traces ?? 0;
  return fields.map((field) => {
    const own = rows.flatMap((row) => {
      const value = row[SUMS[field]] ?? null;
      return value === null ? [] : [{ value, traces: row.traces }];
    });
    const bounds = EDGES[field];
    if (bounds === undefined)
      return valuesOf(
        own.map(({ value, traces }) => ({ value: String(value), traces })),
        total,
      );
    const buckets = own.map(({ value, traces }) => ({
      from: Number(value),
      to: bounds.find((edge) => edge > Number(value)) ?? null,
      traces,
    }));
    return { buckets: buckets.sort((a, b) => a.from - b.from) };
  });
}

async function countSpanValues(
  { clickhouse, filters, signal }: Context,
  fields: readonly SpanField[],
): Promise<Partial<Facet>[]> {
  const [counted] = await readTotal(clickhouse, filters, { signal });
  let share = 1;
  while ((counted?.total ?? 0) / share > COUNTED_TRACES_MAX) share *= 2;
  const rows = await readSpanValues(
    clickhouse,
    { ...filters, ...flagsOf(fields), share, rows: VALUES_MAX },
    { signal },
  );
  return fields.map((field) => ({
    values: rows.flatMap((row) => {
      const value = row[OF_SPANS[field]] ?? null;
      return value === null ? [] : [{ value, traces: row.traces }];
    }),
    approximate: share > 1,
  }));
}

/** Runs a task for each item, a bounded number at a time. */
async function inParallel<T>(items: readonly T[], atOnce: number, task: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const lane = async (): Promise<void> => {
    for (const item of rest) await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane));
}
