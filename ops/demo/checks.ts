// Compares what the service shows of the sent runs with what was sent. Takes the runs' events and a
// client; returns counts and sums as read back, and one line for each difference.
import { z } from 'zod';
import type { RunEvents } from './events.ts';
import type { Progress } from './progress.ts';
import type { ServiceClient } from './service_client.ts';

const traceItem = z.object({
  trace_id: z.string(),
  root_span_name: z.string().nullable(),
  outcome: z.string(),
  duration_ms: z.number(),
  input_tokens: z.number(),
  output_tokens: z.number(),
  cost_usd: z.number(),
  started_at: z.string(),
});
export type TraceItem = z.infer<typeof traceItem>;

const outline = z.object({
  spans: z.object({
    parent: z.array(z.int()),
    input_tokens: z.array(z.number()),
    output_tokens: z.array(z.number()),
    cost_usd: z.array(z.number()),
  }),
});

/** Kind, spans, input and output tokens. */
const byKind = z.object({ rows: z.array(z.tuple([z.string(), z.number(), z.number(), z.number()])) });

const PAGE = 200;
const POLL_MS = 250;
/** Time without progress after which the wait ends. */
const STALL_MAX_MS = 30_000;
/** Traces whose spans are read one by one; all others are compared by their sums. */
export const OUTLINES_MAX = 8;
/** A query of analytics that reads spans covers at most 31 days. */
const ANALYTICS_MS_MAX = 30 * 24 * 3_600_000;
/** Tolerance for sums of doubles, which depend on the order of addition. */
const COST_TOLERANCE = 1e-9;

export interface Totals {
  traces: number;
  failed: number;
  spans: number;
  llm_spans: number;
  tool_spans: number;
  input_tokens: number;
  output_tokens: number;
}

/**
 * Returns the totals that the service must show of the runs. The root of each run is a span of its
 * own.
 */
export function expectedTotals(runs: readonly RunEvents[]): Totals {
  const sum = (pick: (run: RunEvents) => number): number => runs.reduce((total, run) => total + pick(run), 0);
  return {
    traces: runs.length,
    failed: runs.filter((run) => run.outcome !== 'success').length,
    spans: sum((run) => run.spans),
    llm_spans: sum((run) => run.llm_spans),
    tool_spans: sum((run) => run.tool_spans),
    input_tokens: sum((run) => run.input_tokens),
    output_tokens: sum((run) => run.output_tokens),
  };
}

/** Returns the number of traces with a tag. */
export async function countTagged(client: ServiceClient, tag: string): Promise<number> {
  const { meta } = await client.get(`/v1/traces?limit=1&tags=${encodeURIComponent(tag)}`);
  return Number(meta['total']);
}

/**
 * Waits until the given number of traces with the tag are listed, or until the number stops
 * growing.
 * @returns the number listed
 */
export async function waitForTraces(
  client: ServiceClient,
  tag: string,
  wanted: number,
  progress: Progress,
): Promise<number> {
  let seen = -1;
  let movedAt = performance.now();
  while (seen < wanted && performance.now() - movedAt < STALL_MAX_MS) {
    const now = await countTagged(client, tag);
    if (now !== seen) movedAt = performance.now();
    seen = now;
    progress.set(seen);
    if (seen < wanted) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return seen;
}

/** Returns every trace with the tag, newest first, by cursor. */
export async function listTagged(client: ServiceClient, tag: string): Promise<TraceItem[]> {
  const items: TraceItem[] = [];
  let cursor: string | null = null;
  do {
    const { data, meta } = await client.get(
      `/v1/traces?limit=${PAGE}&tags=${encodeURIComponent(tag)}${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    items.push(...z.array(traceItem).parse(data));
    cursor = z.string().nullish().parse(meta['next_cursor']) ?? null;
  } while (cursor !== null);
  return items;
}

/**
 * Returns the totals of the traces with a tag: traces from the list, spans by kind and tokens from one query of
 * analytics for each month.
 */
export async function readTotals(client: ServiceClient, tag: string, items: readonly TraceItem[]): Promise<Totals> {
  const totals: Totals = {
    traces: items.length,
    failed: items.filter((item) => item.outcome !== 'success').length,
    spans: 0,
    llm_spans: 0,
    tool_spans: 0,
    input_tokens: 0,
    output_tokens: 0,
  };
  const starts = items.map(({ started_at }) => Date.parse(started_at));
  const ends = items.map(({ started_at, duration_ms }) => Date.parse(started_at) + duration_ms);
  const end = ends.reduce((latest, each) => Math.max(latest, each), 0) + 1;
  for (let since = Math.min(...starts, end); since < end; since += ANALYTICS_MS_MAX) {
    const until = Math.min(end, since + ANALYTICS_MS_MAX);
    const { data } = await client.post('/v1/analytics/query', {
      view: 'spans',
      measures: [
        { measure: 'count' },
        { measure: 'input_tokens', agg: 'sum' },
        { measure: 'output_tokens', agg: 'sum' },
      ],
      group_by: ['kind'],
      filters: [{ field: 'tag', op: 'eq', value: tag }],
      since: new Date(since).toISOString(),
      until: new Date(until).toISOString(),
    });
    for (const [kind, spans, input, output] of byKind.parse(data).rows) {
      totals.spans += spans;
      if (kind === 'llm') totals.llm_spans += spans;
      if (kind === 'tool') totals.tool_spans += spans;
      totals.input_tokens += input;
      totals.output_tokens += output;
    }
  }
  return totals;
}

/** Returns one line for each difference between a trace in the list and its spans, of the traces with most tokens. */
export async function compareOutlines(
  client: ServiceClient,
  items: readonly TraceItem[],
  progress: Progress,
): Promise<string[]> {
  const differences: string[] = [];
  const largest = items.toSorted((a, b) => b.input_tokens - a.input_tokens).slice(0, OUTLINES_MAX);
  for (const [at, item] of largest.entries()) {
    const { spans } = outline.parse((await client.get(`/v1/traces/${item.trace_id}/outline`)).data);
    for (const field of ['input_tokens', 'output_tokens'] as const) {
      const sum = sumOf(spans[field]);
      if (sum !== item[field])
        differences.push(`${item.trace_id}: the list has ${item[field]} ${field}, its spans ${sum}`);
    }
    const spanCost = sumOf(spans.cost_usd);
    if (Math.abs(spanCost - item.cost_usd) > COST_TOLERANCE)
      differences.push(`${item.trace_id}: the list has cost_usd ${item.cost_usd}, its spans ${spanCost}`);
    const roots = spans.parent.filter((parent) => parent === -1).length;
    if (roots !== 1) differences.push(`${item.trace_id}: ${roots} roots`);
    progress.set(at + 1);
  }
  return differences;
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

/** Returns one line for each total that differs from what was sent. */
export function compareTotals(sent: Totals, seen: Totals): string[] {
  return (Object.keys(sent) as (keyof Totals)[])
    .filter((name) => sent[name] !== seen[name])
    .map((name) => `${name}: sent ${sent[name]}, seen ${seen[name]}`);
}
