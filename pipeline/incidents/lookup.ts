// Looks up why traces failed: their agent, root span and error, from the rows that have landed. It
// takes ids of traces whose failure was published and returns the cluster of each. It writes
// nothing, and leaves out traces that do not exist (any more).
import type { ClickHouse } from '../../sql/client/client.ts';
import { readBounds, readEndedTraces, readErrorTexts } from '../../sql/stores/incidents.ts';
import { ERROR_CHARS_MAX } from '../domain/incidents/error_text.ts';
import { clusterOf } from '../domain/incidents/incidents.ts';

/** Maximum number of characters of an error that are kept unchanged. */
const SAMPLE_CHARS_MAX = 500;
/**
 * Range before the publication of their completion in which traces are searched first: most began
 * then. The others are found by id.
 */
const RECENT_MS = 120_000;
/**
 * Traces further apart than this are searched separately, as a statement reads a whole stretch of
 * time.
 */
const APART_MS = 600_000;

export interface TraceRef {
  org_id: string;
  trace_id: string;
}

/** A trace whose failure was published. */
export interface ReportedFailure extends TraceRef {
  /** Milliseconds since the epoch. */
  told_at: number;
}

/** A trace that failed. Times are milliseconds since the epoch. */
export interface Failure extends TraceRef {
  cluster_id: string;
  agent_id: string;
  root_span_name: string;
  /** The error without its variable parts. */
  error: string;
  sample: string;
  started_ms: number;
  ended_ms: number;
}

type EndedTrace = Awaited<ReturnType<typeof readEndedTraces>>[number];

/** Items that are close to each other in time. */
interface Stretch<T> {
  from_ms: number;
  to_ms: number;
  items: T[];
}

export const keyOf = ({ org_id, trace_id }: TraceRef): string => `${org_id} ${trace_id}`;

/**
 * Looks up failing traces.
 * @param reported at most LOOKUP_MAX
 * @throws StoreUnavailable
 */
export async function lookUpFailures(clickhouse: ClickHouse, reported: readonly ReportedFailure[]): Promise<Failure[]> {
  const traces = (await findTraces(clickhouse, reported)).filter(({ outcome }) => outcome !== 'success');
  const found: Failure[] = [];
  for (const stretch of together(traces, ({ started_ms, ended_ms }) => [started_ms, ended_ms])) {
    const texts = await readTexts(clickhouse, stretch);
    for (const trace of stretch.items) found.push(failureOf(trace, texts.get(textKey(trace)) ?? ''));
  }
  return found;
}

/**
 * Finds where traces have landed: recent ones by the time of their publication, the others by id.
 */
async function findTraces(clickhouse: ClickHouse, reported: readonly ReportedFailure[]): Promise<EndedTrace[]> {
  const left = new Map(reported.map((failure) => [keyOf(failure), failure]));
  const found: EndedTrace[] = [];
  const look = async (stretches: readonly Stretch<TraceRef>[]): Promise<void> => {
    for (const { from_ms, to_ms, items } of stretches) {
      const rows = await readEndedTraces(clickhouse, { ...idsOf(items), from_ms, to_ms });
      found.push(...rows.filter((row) => left.delete(keyOf(row))));
    }
  };
  await look(together(reported, ({ told_at }) => [told_at - RECENT_MS, told_at]));
  if (left.size === 0) return found;
  const located = await readBounds(clickhouse, idsOf([...left.values()]));
  const bounds = located.flatMap((row) => (left.has(keyOf(row)) ? [row] : []));
  await look(together(bounds, ({ from_ms, to_ms }) => [from_ms, to_ms]));
  return found;
}

function idsOf(refs: readonly TraceRef[]): { orgs: string[]; traces: string[] } {
  return { orgs: refs.map(({ org_id }) => org_id), traces: refs.map(({ trace_id }) => trace_id) };
}

/** Returns stretches of time that together hold all items. */
function together<T>(items: readonly T[], boundsOf: (item: T) => readonly [from: number, to: number]): Stretch<T>[] {
  const stretches: Stretch<T>[] = [];
  for (const item of items.toSorted((a, b) => boundsOf(a)[0] - boundsOf(b)[0])) {
    const [from_ms, to_ms] = boundsOf(item);
    const last = stretches.at(-1);
    if (last === undefined || from_ms - last.to_ms > APART_MS) stretches.push({ from_ms, to_ms, items: [item] });
    else {
      last.items.push(item);
      last.to_ms = Math.max(last.to_ms, to_ms);
    }
  }
  return stretches;
}

/**
 * The outcome of a trace is that of its worst span, so the span that names the reason has the same
 * outcome.
 */
const textKey = ({ org_id, trace_key, outcome }: Pick<EndedTrace, 'org_id' | 'trace_key' | 'outcome'>): string =>
  `${org_id} ${trace_key} ${outcome}`;

/** Reads the error texts of the traces' failing spans, by textKey; traces without one are left out. */
async function readTexts(
  clickhouse: ClickHouse,
  { from_ms, to_ms, items }: Stretch<EndedTrace>,
): Promise<Map<string, string>> {
  const orgs = [...new Set(items.map(({ org_id }) => org_id))];
  const trace_keys = items.map(({ trace_key }) => BigInt(trace_key));
  const rows = await readErrorTexts(clickhouse, { orgs, trace_keys, from_ms, to_ms, chars: ERROR_CHARS_MAX });
  return new Map(rows.map((row) => [textKey(row), row.text]));
}

function failureOf(
  { org_id, trace_id, agent_id, root_span_name, started_ms, ended_ms }: EndedTrace,
  text: string,
): Failure {
  const { cluster_id, error } = clusterOf(agent_id, root_span_name, text);
  const sample = text.slice(0, SAMPLE_CHARS_MAX).toWellFormed();
  return { org_id, trace_id, cluster_id, agent_id, root_span_name, error, sample, started_ms, ended_ms };
}
