// Lists, gets and resolves incidents. Resolving is one compare-and-swap write, so an incident is
// resolved once, by time or by one caller; a worker sends its event from the record, even if this
// process dies.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { closedIncident, incidentRow } from '../../../pipeline/domain/incidents/incident_record.ts';
import { CRITICAL_TRACES, severityOf } from '../../../pipeline/domain/incidents/incidents.ts';
import { incidentKey, type IncidentRecord } from '../../../schemas/records/incident.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { writeIncidents } from '../../../sql/stores/incidents.ts';
import { ApiError } from '../../http/errors.ts';
import { type CursorMeta, cursorPage } from '../../http/list_pages.ts';
import { cursorOf, type IncidentDetail, type IncidentItem, type IncidentsQuery, placeOf } from './schema.ts';
import {
  type IncidentFilters,
  type OpenIncidents,
  readIncidents,
  readIncidentTotal,
  readIncidentTraces,
  type ShownIncident,
} from './store.ts';

export interface IncidentsDeps {
  clickhouse: ClickHouse;
  incidents: OpenIncidents;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
}

const TRACE_IDS_MAX = 20;
/**
 * Attempts and pause in milliseconds until the row and the record of an incident agree: they are
 * written one after the other.
 */
const AGREE_TRIES_MAX = 20;
const AGREE_PAUSE_MS = 100;

interface IncidentList {
  data: IncidentItem[];
  meta: CursorMeta;
}

/**
 * Serves GET /v1/incidents. @throws ApiError invalid_request for a cursor that this list did not
 * return
 */
export async function listIncidents(
  { clickhouse }: IncidentsDeps,
  org_id: string,
  query: IncidentsQuery,
  signal: AbortSignal,
): Promise<IncidentList> {
  const place = query.cursor === undefined ? null : placeOf(query.cursor);
  const filters: IncidentFilters = {
    org_id,
    status: query.status,
    min_traces: query.severity === 'critical' ? CRITICAL_TRACES : undefined,
    max_traces: query.severity === 'warning' ? CRITICAL_TRACES - 1 : undefined,
    agent_id: query.agent_id,
    cluster_id: query.cluster_id,
    since_ms: query.since,
    until_ms: query.until,
  };
  const from =
    place === null ? { skip: query.offset } : { skip: 0, from_place_ms: place.ms, from_id: place.incident_id };
  const [[counted], rows] = await Promise.all([
    readIncidentTotal(clickhouse, filters, { signal }),
    readIncidents(clickhouse, { ...filters, ...from, rows: query.limit + 1 }, { signal }),
  ]);
  const page = cursorPage(rows, {
    limit: query.limit,
    total: counted?.total ?? 0,
    before: place?.before ?? query.offset,
    byCursor: place !== null,
    cursorAfter: (last, before) => cursorOf({ ms: last.opened_ms, incident_id: last.incident_id, before }),
  });
  return { data: page.data.map(itemOf), meta: page.meta };
}

/** Serves GET /v1/incidents/{incident_id}. @throws ApiError incident_not_found */
export async function showIncident(
  deps: IncidentsDeps,
  org_id: string,
  incident_id: string,
  signal: AbortSignal,
): Promise<IncidentDetail> {
  return detailOf(deps, org_id, await findIncident(deps, org_id, incident_id, signal), signal);
}

/**
 * Resolves an incident now. A resolved incident stays as it is.
 *
 * @param by id of the user or API key
 * @returns changed: true if this call resolved the incident
 * @throws ApiError incident_not_found, upstream_unavailable
 */
export async function resolveIncident(
  deps: IncidentsDeps,
  org_id: string,
  incident_id: string,
  by: string,
  signal: AbortSignal,
): Promise<{ incident: IncidentDetail; changed: boolean }> {
  for (let tries = 1; tries <= AGREE_TRIES_MAX; tries++) {
    const shown = await findIncident(deps, org_id, incident_id, signal);
    const incident = await detailOf(deps, org_id, shown, signal);
    if (shown.status === 'resolved') return { incident, changed: false };
    const closed = await closeRecord(deps, org_id, shown, by);
    if (closed !== null)
      return {
        incident: { ...incident, status: 'resolved', resolved_at: closed.at, resolved_by: closed.by },
        changed: true,
      };
    await sleep(AGREE_PAUSE_MS, undefined, { signal });
  }
  throw new ApiError('upstream_unavailable', 'The incident is being changed by another request. Try again.');
}

/**
 * @returns null if the record was deleted or closed, or belongs to another incident of the cluster
 */
async function closeRecord(
  { clickhouse, incidents, now, onProblem }: IncidentsDeps,
  org_id: string,
  shown: ShownIncident,
  by: string,
): Promise<IncidentRecord['closed']> {
  const traces = {
    trace_count: shown.trace_count,
    first_trace_ms: Date.parse(shown.first_trace_at),
    last_trace_ms: Date.parse(shown.last_trace_at),
  };
  const written: { record: IncidentRecord | null } = { record: null };
  await incidents.change(incidentKey(org_id, shown.cluster_id), (record) => {
    written.record = null;
    if (record?.incident_id !== shown.incident_id || record.closed !== null) return null;
    const at = now();
    written.record = closedIncident(record, traces, { at, by, until_ms: Math.max(at, record.last_ms) });
    return written.record;
  });
  if (written.record === null) return null;
  try {
    // A worker also writes the row, and sends the event. The row is written here so that the caller
    // reads the change.
    await writeIncidents(clickhouse, [incidentRow(written.record)]);
  } catch (cause) {
    onProblem('the row of a resolved incident was not written; a worker writes it', cause);
  }
  return written.record.closed;
}

/** @throws ApiError incident_not_found */
export async function findIncident(
  { clickhouse }: Pick<IncidentsDeps, 'clickhouse'>,
  org_id: string,
  incident_id: string,
  signal: AbortSignal,
): Promise<ShownIncident> {
  const [found] = await readIncidents(clickhouse, { org_id, incident_id, rows: 1, skip: 0 }, { signal });
  if (found === undefined) throw new ApiError('incident_not_found', 'There is no incident with this id.');
  return found;
}

async function detailOf(
  { clickhouse }: IncidentsDeps,
  org_id: string,
  shown: ShownIncident,
  signal: AbortSignal,
): Promise<IncidentDetail> {
  const { cluster_id, from_ms, until_ms, status } = shown;
  const until = status === 'open' ? {} : { until_ms };
  const traces = await readIncidentTraces(
    clickhouse,
    { org_id, cluster_id, from_ms, ...until, rows: TRACE_IDS_MAX },
    { signal },
  );
  return { ...itemOf(shown), trace_ids: traces.map(({ trace_id }) => trace_id) };
}

const orNull = (text: string): string | null => (text === '' ? null : text);

function itemOf(shown: ShownIncident): IncidentItem {
  const resolved = shown.status === 'resolved';
  return {
    incident_id: shown.incident_id,
    cluster_id: shown.cluster_id,
    status: shown.status,
    severity: severityOf(shown.trace_count),
    agent_id: orNull(shown.agent_id),
    root_span_name: orNull(shown.root_span_name),
    error: shown.error,
    sample: shown.sample,
    trace_count: shown.trace_count,
    first_trace_at: shown.first_trace_at,
    last_trace_at: shown.last_trace_at,
    opened_at: new Date(shown.opened_ms).toISOString(),
    resolved_at: resolved ? shown.resolved_at : null,
    resolved_by: resolved ? orNull(shown.resolved_by) : null,
  };
}
