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
});
export type TraceItem = z.infer<typeof traceItem>;

const outline = z.object({
  spans: z.object({
    parent: z.array(z.int()),
    kind: z.array(z.string()),
    input_tokens: z.array(z.number()),
    output_tokens: z.array(z.number()),
    cost_usd: z.array(z.number()),
  }),
});

const PAGE = 200;
const POLL_MS = 250;
/** Time without progress after which the wait ends. */
const STALL_MAX_MS = 30_000;
const OUTLINES_AT_ONCE = 4;
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

/** Returns the totals of traces, from their list items and from all of their outlines. */
export async function readTotals(
  client: ServiceClient,
  items: readonly TraceItem[],
  progress: Progress,
): Promise<{ totals: Totals; cost_usd: number; differences: string[] }> {
  const totals: Totals = {
    traces: items.length,
    failed: items.filter((item) => item.outcome !== 'success').length,
    spans: 0,
    llm_spans: 0,
    tool_spans: 0,
    input_tokens: 0,
    output_tokens: 0,
  };
  const differences: string[] = [];
  let cost = 0;
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) {
      const { spans } = outline.parse((await client.get(`/v1/traces/${item.trace_id}/outline`)).data);
      const of = (kind: string): number => spans.kind.filter((each) => each === kind).length;
      totals.spans += spans.kind.length;
      totals.llm_spans += of('llm');
      totals.tool_spans += of('tool');
      for (const field of ['input_tokens', 'output_tokens'] as const) {
        const sum = sumOf(spans[field]);
        totals[field] += sum;
        if (sum !== item[field])
          differences.push(`${item.trace_id}: the list has ${item[field]} ${field}, its spans ${sum}`);
      }
      const spanCost = sumOf(spans.cost_usd);
      cost += item.cost_usd;
      if (Math.abs(spanCost - item.cost_usd) > COST_TOLERANCE)
        differences.push(`${item.trace_id}: the list has cost_usd ${item.cost_usd}, its spans ${spanCost}`);
      const roots = spans.parent.filter((parent) => parent === -1).length;
      if (roots !== 1) differences.push(`${item.trace_id}: ${roots} roots`);
      progress.set(items.length - left.length);
    }
  };
  await Promise.all(Array.from({ length: OUTLINES_AT_ONCE }, worker));
  return { totals, cost_usd: cost, differences };
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

/** Returns one line for each total that differs from what was sent. */
export function compareTotals(sent: Totals, seen: Totals): string[] {
  return (Object.keys(sent) as (keyof Totals)[])
    .filter((name) => sent[name] !== seen[name])
    .map((name) => `${name}: sent ${sent[name]}, seen ${seen[name]}`);
}
