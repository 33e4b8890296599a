// The stores of incidents: reads of ClickHouse, and the records of open incidents in JetStream KV.
import { z } from 'zod';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { IncidentRecord } from '../../../schemas/records/incident.ts';
import { defineQuery } from '../../../sql/client/query.ts';

/** Int64 and UInt64 arrive as text; these values stay below 2^53. */
const count = z.coerce.number().pipe(z.int());

const filterFields = {
  org_id: z.string(),
  incident_id: z.string().optional(),
  status: z.enum(['open', 'resolved']).optional(),
  min_traces: z.int().optional(),
  max_traces: z.int().optional(),
  agent_id: z.string().optional(),
  cluster_id: z.string().optional(),
  since_ms: z.int().optional(),
  until_ms: z.int().optional(),
};
const filters = z.object(filterFields);
/** Filters of the list; a filter that is left out matches everything. */
export type IncidentFilters = z.input<typeof filters>;

const shownIncident = z.object({
  incident_id: z.string(),
  cluster_id: z.string(),
  status: z.enum(['open', 'resolved']),
  agent_id: z.string(),
  root_span_name: z.string(),
  error: z.string(),
  sample: z.string(),
  opened_ms: count,
  from_ms: count,
  until_ms: count,
  trace_count: count,
  first_trace_at: z.string(),
  last_trace_at: z.string(),
  resolved_at: z.string(),
  resolved_by: z.string(),
});
export type ShownIncident = z.output<typeof shownIncident>;

export const readIncidents = defineQuery({
  name: 'incidents_page',
  file: 'incidents/page.sql',
  params: z.object({
    ...filterFields,
    from_place_ms: z.int().optional(),
    from_id: z.string().optional(),
    rows: z.int(),
    skip: z.int(),
  }),
  row: shownIncident,
});

export const readIncidentTotal = defineQuery({
  name: 'incidents_total',
  file: 'incidents/total.sql',
  params: filters,
  row: z.object({ total: count }),
});

/** Newest first. */
export const readIncidentTraces = defineQuery({
  name: 'incidents_trace_ids',
  file: 'incidents/trace_ids.sql',
  params: z.object({
    org_id: z.string(),
    cluster_id: z.string(),
    from_ms: z.int(),
    until_ms: z.int().optional(),
    rows: z.int(),
  }),
  row: z.object({ trace_id: z.string() }),
});

/** Buckets without a trace have no row. */
export const readIncidentSeries = defineQuery({
  name: 'incident_series',
  file: 'incidents/series.sql',
  params: z.object({
    org_id: z.string(),
    cluster_id: z.string(),
    bucket_ms: z.int(),
    from_ms: z.int(),
    to_ms: z.int(),
    first_ms: z.int(),
    last_ms: z.int(),
  }),
  row: z.object({ bucket: count, traces: count, of_incident: count }),
});

/** Incidents that are open, or resolved and not yet reported. */
export type OpenIncidents = WatchedBucket<IncidentRecord>;

export async function openIncidentRecords(log: Log, onProblem: ReportProblem): Promise<OpenIncidents> {
  return watch(log, 'incidents', onProblem);
}
