// States of an incident, and the row and events of each. In: a record and what happened. Out: the
// next record, its row for readers, its events. Pure.
import type { IncidentRecord, IncidentTraces } from '../../../schemas/records/incident.ts';
import { RESOLVED_BY_TIME } from '../../../schemas/records/incident.ts';
import type { IncidentRow } from '../../../sql/stores/incidents.ts';
import { incidentEventId, incidentIdOf, severityOf, type Spell } from './incidents.ts';

/** A platform event of an incident. */
export interface IncidentEvent {
  /** Identical each time the event is sent, so that receivers can drop duplicates. */
  event_id: string;
  event: 'incident.created' | 'incident.resolved';
  org_id: string;
  payload: Readonly<Record<string, unknown>>;
}

/** What the traces of a new incident have in common. */
export type IncidentKind = Pick<
  IncidentRecord,
  'org_id' | 'cluster_id' | 'agent_id' | 'root_span_name' | 'error' | 'sample'
>;

/**
 * Returns the record of a new incident.
 * @param now when it was found, milliseconds
 * @param after_ms see the record
 */
export function openedIncident(
  kind: IncidentKind,
  spell: Spell,
  traces: IncidentTraces,
  { now, after_ms }: { now: number; after_ms: number },
): IncidentRecord {
  const { org_id, cluster_id, agent_id, root_span_name, error, sample } = kind;
  const { trace_count, first_trace_ms, last_trace_ms } = traces;
  return {
    org_id,
    incident_id: incidentIdOf(org_id, cluster_id, spell.from_ms),
    cluster_id,
    agent_id,
    root_span_name,
    error,
    sample,
    version: 1,
    settled: 0,
    after_ms,
    ...spell,
    opened_at: new Date(now).toISOString(),
    opened: { trace_count, first_trace_ms, last_trace_ms },
    closed: null,
  };
}

/**
 * Returns an open incident with its new time range. The version grows, and so readers see a new
 * state, only when it now begins earlier.
 */
export function movedIncident(record: IncidentRecord, { from_ms, last_ms }: Spell): IncidentRecord {
  return { ...record, from_ms, last_ms, version: record.version + (from_ms === record.from_ms ? 0 : 1) };
}

/**
 * Returns the record of the resolved incident.
 * @param at when it is resolved, milliseconds
 * @param until_ms traces that fail later do not belong to it
 */
export function closedIncident(
  record: IncidentRecord,
  { trace_count, first_trace_ms, last_trace_ms }: IncidentTraces,
  { at, by, until_ms }: { at: number; by: string; until_ms: number },
): IncidentRecord {
  const closed = { trace_count, first_trace_ms, last_trace_ms, at: new Date(at).toISOString(), by, until_ms };
  return { ...record, version: record.version + 1, closed };
}

/** Returns the row that readers see. */
export function incidentRow(record: IncidentRecord): IncidentRow {
  const { org_id, incident_id, cluster_id, agent_id, root_span_name, error, sample, version, from_ms, opened, closed } =
    record;
  const { trace_count, first_trace_ms, last_trace_ms } = closed ?? opened;
  return {
    org_id,
    incident_id,
    cluster_id,
    status: closed === null ? 'open' : 'resolved',
    agent_id,
    root_span_name,
    error,
    sample,
    opened_ms: Date.parse(record.opened_at),
    from_ms,
    until_ms: closed?.until_ms ?? 0,
    trace_count,
    first_trace_ms,
    last_trace_ms,
    resolved_ms: closed === null ? 0 : Date.parse(closed.at),
    resolved_by: closed?.by ?? '',
    version,
  };
}

export function createdEvent(record: IncidentRecord): IncidentEvent {
  return eventOf('incident.created', record, record.opened, {});
}

/** Returns the event of a resolved incident; null while it is open. */
export function resolvedEvent(record: IncidentRecord): IncidentEvent | null {
  const { closed } = record;
  if (closed === null) return null;
  const resolution = closed.by === RESOLVED_BY_TIME ? 'auto' : 'manual';
  return eventOf('incident.resolved', record, closed, { resolved_at: closed.at, resolution });
}

function eventOf(
  event: IncidentEvent['event'],
  { org_id, incident_id, cluster_id }: IncidentRecord,
  { trace_count, first_trace_ms }: IncidentTraces,
  more: Readonly<Record<string, unknown>>,
): IncidentEvent {
  const first_trace_at = new Date(first_trace_ms).toISOString();
  return {
    event_id: incidentEventId(event, incident_id),
    event,
    org_id,
    payload: {
      event,
      org_id,
      incident_id,
      cluster_id,
      severity: severityOf(trace_count),
      trace_count,
      first_trace_at,
      ...more,
    },
  };
}
