// Reads and writes of failing traces and incidents, for the pipeline and the API. Times are
// milliseconds since the epoch.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery } from '../client/query.ts';
import { storeTime } from '../client/store_time.ts';

/**
 * Maximum traces or clusters of one statement. The engine accepts 128 KiB for one parameter; 500 ids
 * of 128 characters take half of it.
 */
export const LOOKUP_MAX = 500;

/** Int64 and UInt64 arrive as text; these stay below 2^53. */
const whole = z.coerce.number().pipe(z.int());
const outcome = z.enum(['success', 'error', 'timeout']);
const orgs = z.array(z.string());

/** Traces. The lists of organizations and traces are parallel. */
const traces = { orgs, traces: z.array(z.string()) };
/** Traces of some organizations between two instants. */
const placed = { orgs, trace_keys: z.array(z.bigint()), from_ms: z.int(), to_ms: z.int() };
/** Clusters. The lists of organizations and clusters are parallel. */
const clusters = { orgs, clusters: z.array(z.string()) };
const cluster = { org_id: z.string(), cluster_id: z.string() };

export const readCounted = defineQuery({
  name: 'incident_counted',
  file: 'incidents/counted.sql',
  params: z.object(traces),
  row: z.object({ ...cluster, trace_id: z.string(), at_ms: whole }),
});

export const readBounds = defineQuery({
  name: 'incident_bounds',
  file: 'incidents/bounds.sql',
  params: z.object(traces),
  row: z.object({ org_id: z.string(), trace_id: z.string(), from_ms: whole, to_ms: whole }),
});

export const readEndedTraces = defineQuery({
  name: 'incident_traces',
  file: 'incidents/traces.sql',
  params: z.object({ ...traces, from_ms: z.int(), to_ms: z.int() }),
  row: z.object({
    org_id: z.string(),
    trace_key: z.string(),
    trace_id: z.string(),
    root_span_name: z.string(),
    agent_id: z.string(),
    outcome,
    started_ms: whole,
    ended_ms: whole,
  }),
});

export const readErrorTexts = defineQuery({
  name: 'incident_error_texts',
  file: 'incidents/error_texts.sql',
  params: z.object({ ...placed, chars: z.int() }),
  row: z.object({ org_id: z.string(), trace_key: z.string(), outcome, text: z.string() }),
});

/**
 * `froms_ms` holds the start for each cluster, `from_ms` the earliest of them. Rows rise by last_ms
 * within a cluster.
 */
export const readStretches = defineQuery({
  name: 'incident_stretches',
  file: 'incidents/stretches.sql',
  params: z.object({ ...clusters, froms_ms: z.array(z.int()), from_ms: z.int() }),
  row: z.object({ ...cluster, first_ms: z.array(whole), last_ms: whole }),
});

export const readFloors = defineQuery({
  name: 'incident_floors',
  file: 'incidents/floors.sql',
  params: z.object(clusters),
  row: z.object({ ...cluster, until_ms: whole }),
});

/**
 * `froms_ms` and `untils_ms` hold the range for each cluster, `from_ms` the earliest start.
 * Clusters without traces in their range are left out.
 */
export const readTallies = defineQuery({
  name: 'incident_tally',
  file: 'incidents/tally.sql',
  params: z.object({ ...clusters, froms_ms: z.array(z.int()), untils_ms: z.array(z.int()), from_ms: z.int() }),
  row: z.object({
    ...cluster,
    trace_count: whole,
    first_trace_ms: whole,
    last_trace_ms: whole,
    last_ms: whole,
    agent_id: z.string(),
    root_span_name: z.string(),
    error: z.string(),
    sample: z.string(),
  }),
});

/** Failing trace as it is counted. */
export interface FailingTrace {
  org_id: string;
  cluster_id: string;
  at_ms: number;
  trace_id: string;
  started_ms: number;
  agent_id: string;
  root_span_name: string;
  error: string;
  sample: string;
}

/** Incident as readers see it. Fields without a meaning for an open incident are 0 or empty. */
export interface IncidentRow {
  org_id: string;
  incident_id: string;
  cluster_id: string;
  status: 'open' | 'resolved';
  agent_id: string;
  root_span_name: string;
  error: string;
  sample: string;
  opened_ms: number;
  from_ms: number;
  until_ms: number;
  trace_count: number;
  first_trace_ms: number;
  last_trace_ms: number;
  resolved_ms: number;
  resolved_by: string;
  version: number;
}

const WRITE_TIMEOUT_MS = 15_000;

/** Writes failing traces. Resolves when the rows are on the disk. */
export async function writeFailingTraces(client: ClickHouse, rows: readonly FailingTrace[]): Promise<void> {
  const body = rows
    .map(({ at_ms, started_ms, ...rest }) =>
      JSON.stringify({ ...rest, at: storeTime(at_ms), started_at: storeTime(started_ms) }),
    )
    .join('\n');
  await client.execute({
    name: 'land_incident_traces',
    sql: 'INSERT INTO incident_traces (org_id, cluster_id, at, trace_id, started_at, agent_id, root_span_name, error, sample) FORMAT JSONEachRow',
    body,
    timeoutMs: WRITE_TIMEOUT_MS,
  });
}

/**
 * Writes the current state of incidents, replacing older states; writing the same state twice
 * changes nothing. Resolves when the rows are on the disk.
 */
export async function writeIncidents(client: ClickHouse, incidents: readonly IncidentRow[]): Promise<void> {
  const rows = incidents.map(
    ({ opened_ms, from_ms, until_ms, first_trace_ms, last_trace_ms, resolved_ms, ...rest }) => ({
      ...rest,
      opened_at: storeTime(opened_ms),
      from_at: storeTime(from_ms),
      until_at: storeTime(until_ms),
      first_trace_at: storeTime(first_trace_ms),
      last_trace_at: storeTime(last_trace_ms),
      resolved_at: storeTime(resolved_ms),
    }),
  );
  const [first] = rows;
  if (first === undefined) return;
  await client.execute({
    name: 'write_incidents',
    sql: `INSERT INTO incidents (${Object.keys(first).join(', ')}) FORMAT JSONEachRow`,
    body: rows.map((row) => JSON.stringify(row)).join('\n'),
    timeoutMs: WRITE_TIMEOUT_MS,
  });
}
