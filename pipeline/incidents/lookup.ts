// What failing traces failed of: their agent, root span and error, read where they have landed. In: ids of traces whose failure
// was told. Out: what each is counted by. It writes nothing; a trace that is not there (any more) is left out.
import type { ClickHouse } from '../../sql/client.ts';
import { readBounds, readEndedTraces, readErrors, readResponses } from '../../sql/incidents.ts';
import { ERROR_CHARS_MAX } from '../domain/error_text.ts';
import { clusterOf } from '../domain/incidents.ts';

/** Characters of an error that are kept as they came. */
const SAMPLE_CHARS_MAX = 500;
/** Traces further apart than this are looked for by themselves: what is read is a stretch of time. */
const APART_MS = 3_600_000;

export interface TraceRef {
  org_id: string;
  trace_id: string;
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

interface Placed {
  orgs: string[];
  trace_keys: string[];
  from_ms: number;
  to_ms: number;
}

/** Looks failing traces up. @param refs at most LOOKUP_MAX @throws StoreUnavailable */
export async function lookUpFailures(clickhouse: ClickHouse, refs: readonly TraceRef[]): Promise<Failure[]> {
  const wanted = new Set(refs.map(keyOf));
  const orgs = [...new Set(refs.map(({ org_id }) => org_id))];
  const bounds = await readBounds(clickhouse, { orgs, traces: refs.map(({ trace_id }) => trace_id) });
  const found: Failure[] = [];
  for (const place of placesOf(bounds)) found.push(...(await lookUpAt(clickhouse, place)));
  return found.filter((failure) => wanted.has(keyOf(failure)));
}

export const keyOf = ({ org_id, trace_id }: TraceRef): string => `${org_id} ${trace_id}`;

/** Stretches of time that the traces lie in. @param bounds rising by from_ms */
function placesOf(bounds: readonly { org_id: string; trace_key: string; from_ms: number; to_ms: number }[]): Placed[] {
  const places: Placed[] = [];
  for (const { org_id, trace_key, from_ms, to_ms } of bounds) {
    let place = places.at(-1);
    if (place === undefined || from_ms - place.to_ms > APART_MS) {
      place = { orgs: [], trace_keys: [], from_ms, to_ms };
      places.push(place);
    }
    if (!place.orgs.includes(org_id)) place.orgs.push(org_id);
    place.trace_keys.push(trace_key);
    place.to_ms = Math.max(place.to_ms, to_ms);
  }
  return places;
}

async function lookUpAt(clickhouse: ClickHouse, place: Placed): Promise<Failure[]> {
  const read = { ...place, chars: ERROR_CHARS_MAX };
  const [traces, errors] = await Promise.all([readEndedTraces(clickhouse, place), readErrors(clickhouse, read)]);
  const said = textsOf(errors);
  const silent = traces.filter(({ org_id, trace_key, outcome }) => !said.has(`${org_id} ${trace_key} ${outcome}`));
  const responses = silent.length === 0 ? [] : await readResponses(clickhouse, { ...read, trace_keys: silent.map(({ trace_key }) => trace_key) });
  const answered = textsOf(responses);
  return traces
    .filter(({ outcome }) => outcome !== 'success')
    .map(({ org_id, trace_key, outcome, trace_id, agent_id, root_span_name, started_ms, ended_ms }) => {
      // A trace's outcome is that of its worst span, so the span that says why has the same.
      const key = `${org_id} ${trace_key} ${outcome}`;
      const text = said.get(key) ?? answered.get(key) ?? '';
      const { cluster_id, error } = clusterOf(agent_id, root_span_name, text);
      const sample = text.slice(0, SAMPLE_CHARS_MAX).toWellFormed();
      return { org_id, trace_id, cluster_id, agent_id, root_span_name, error, sample, started_ms, ended_ms };
    });
}

function textsOf(rows: readonly { org_id: string; trace_key: string; outcome: string; text: string }[]): Map<string, string> {
  return new Map(rows.map(({ org_id, trace_key, outcome, text }) => [`${org_id} ${trace_key} ${outcome}`, text]));
}
