// What failing traces failed of: their agent, root span and error, read where they have landed. In: ids of traces whose failure
// was told. Out: what each is counted by. It writes nothing; a trace that is not there (any more) is left out.
import type { ClickHouse } from '../../sql/client/client.ts';
import { readBounds, readEndedTraces, readErrors, readResponses } from '../../sql/stores/incidents.ts';
import { ERROR_CHARS_MAX } from '../domain/incidents/error_text.ts';
import { clusterOf } from '../domain/incidents/incidents.ts';

/** Characters of an error that are kept as they came. */
const SAMPLE_CHARS_MAX = 500;
/** How long before their completion was told traces are looked for, in turn: most began then. The rest is located by its ids. */
const RECENT_MS = [10_000, 120_000] as const;
/** Traces further apart than this are looked for by themselves: what is read is a stretch of time. */
const APART_MS = 600_000;

export interface TraceRef {
  org_id: string;
  trace_id: string;
}

/** A trace whose failure was told. */
export interface ToldFailure extends TraceRef {
  /** Milliseconds since the epoch. */
  told_at: number;
}

/** A trace that failed. Times are milliseconds since the epoch. */
export interface Failure extends TraceRef {
  cluster_id: string;
  agent_id: string;
  root_span_name: string;
  /** Without what differs each time. */
  error: string;
  sample: string;
  started_ms: number;
  ended_ms: number;
}

type EndedTrace = Awaited<ReturnType<typeof readEndedTraces>>[number];

/** Items that lie together in time. */
interface Stretch<T> {
  from_ms: number;
  to_ms: number;
  items: T[];
}

export const keyOf = ({ org_id, trace_id }: TraceRef): string => `${org_id} ${trace_id}`;

/** Looks failing traces up. @param told at most LOOKUP_MAX @throws StoreUnavailable */
export async function lookUpFailures(clickhouse: ClickHouse, told: readonly ToldFailure[]): Promise<Failure[]> {
  const traces = (await findTraces(clickhouse, told)).filter(({ outcome }) => outcome !== 'success');
  const found: Failure[] = [];
  for (const stretch of together(traces, ({ started_ms, ended_ms }) => [started_ms, ended_ms])) {
    const texts = await readTexts(clickhouse, stretch);
    for (const trace of stretch.items) found.push(failureOf(trace, texts.get(textKey(trace)) ?? ''));
  }
  return found;
}

/** Where traces have landed: the recent ones by the time at which they were told, the others by their ids. */
async function findTraces(clickhouse: ClickHouse, told: readonly ToldFailure[]): Promise<EndedTrace[]> {
  const left = new Map(told.map((failure) => [keyOf(failure), failure]));
  const found: EndedTrace[] = [];
  const look = async (stretches: readonly Stretch<TraceRef>[]): Promise<void> => {
    for (const { from_ms, to_ms, items } of stretches) {
      const rows = await readEndedTraces(clickhouse, { ...idsOf(items), from_ms, to_ms });
      found.push(...rows.filter((row) => left.delete(keyOf(row))));
    }
  };
  for (const recent of RECENT_MS) {
    await look(together([...left.values()], ({ told_at }) => [told_at - recent, told_at]));
    if (left.size === 0) return found;
  }
  const located = await readBounds(clickhouse, idsOf([...left.values()]));
  const bounds = located.flatMap((row) => (left.has(keyOf(row)) ? [row] : []));
  await look(together(bounds, ({ from_ms, to_ms }) => [from_ms, to_ms]));
  return found;
}

function idsOf(refs: readonly TraceRef[]): { orgs: string[]; traces: string[] } {
  return { orgs: refs.map(({ org_id }) => org_id), traces: refs.map(({ trace_id }) => trace_id) };
}

/** Stretches of time that hold all items. */
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

/** A trace's outcome is that of its worst span, so the span that says why has the same. */
const textKey = ({ org_id, trace_key, outcome }: Pick<EndedTrace, 'org_id' | 'trace_key' | 'outcome'>): string =>
  `${org_id} ${trace_key} ${outcome}`;

/** What failing spans of the traces say, by textKey: what is named an error first, answers where nothing is. */
async function readTexts(
  clickhouse: ClickHouse,
  { from_ms, to_ms, items }: Stretch<EndedTrace>,
): Promise<Map<string, string>> {
  const orgs = [...new Set(items.map(({ org_id }) => org_id))];
  const place = { orgs, from_ms, to_ms, chars: ERROR_CHARS_MAX };
  const keysOf = (traces: readonly EndedTrace[]): bigint[] => traces.map(({ trace_key }) => BigInt(trace_key));
  const errors = await readErrors(clickhouse, { ...place, trace_keys: keysOf(items) });
  const texts = new Map(errors.map((row) => [textKey(row), row.text]));
  const silent = items.filter((trace) => !texts.has(textKey(trace)));
  if (silent.length === 0) return texts;
  for (const row of await readResponses(clickhouse, { ...place, trace_keys: keysOf(silent) })) {
    if (!texts.has(textKey(row))) texts.set(textKey(row), row.text);
  }
  return texts;
}

function failureOf(
  { org_id, trace_id, agent_id, root_span_name, started_ms, ended_ms }: EndedTrace,
  text: string,
): Failure {
  const { cluster_id, error } = clusterOf(agent_id, root_span_name, text);
  const sample = text.slice(0, SAMPLE_CHARS_MAX).toWellFormed();
  return { org_id, trace_id, cluster_id, agent_id, root_span_name, error, sample, started_ms, ended_ms };
}
