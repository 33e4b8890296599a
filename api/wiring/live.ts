// Wires the live streams: what they follow in this process and in NATS, and how they read traces.
import { followLandingReports } from '../../ops/exchange/landing_reports.ts';
import { followServiceEvents } from '../../ops/exchange/service_events.ts';
import { severityOf } from '../../pipeline/domain/incidents/incidents.ts';
import type { ServiceEvent } from '../../schemas/codec.ts';
import type { IncidentRecord } from '../../schemas/records/incident.ts';
import { jobView } from '../../schemas/records/job_record.ts';
import { evalItemOf } from '../control/evals/schema.ts';
import type { Route } from '../http/route.ts';
import { LiveHub, type LiveSignal, type LiveSource } from '../telemetry/live/hub.ts';
import { liveRoutes } from '../telemetry/live/routes.ts';
import { BUDGET_EVENTS, type IncidentMessage } from '../telemetry/live/schema.ts';
import { readChangedTraces } from '../telemetry/traces/changed.ts';
import { filterParams } from '../telemetry/traces/filter_params.ts';
import { filtersOf, type ListFilters } from '../telemetry/traces/filters.ts';
import type { WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';

/** Texts become searchable seconds after their trace landed, so a live search would miss most. */
const liveFilters = Object.fromEntries(Object.entries(filterParams).filter(([name]) => name !== 'search'));

export interface Live {
  routes: Route[];
  /** Ends the streams of this process. */
  drain: () => void;
}

export function openLive({ log, clickhouse, onProblem }: WiringParts, stores: Stores): Live {
  const { orgs, keys, incidents, evals, jobs } = stores;
  const hub = new LiveHub<ListFilters>({
    sources: {
      events: (take) =>
        followServiceEvents(
          log.nc,
          (events) => {
            for (const event of events) for (const signal of signalsOf(event)) take(signal);
          },
          onProblem,
        ),
      landings: (take) =>
        followLandingReports(
          log.nc,
          () => {
            take({ kind: 'landed' });
          },
          onProblem,
        ),
      reconnects: reconnects(log.nc),
      incidents: (take) =>
        incidents.onChange((_key, held) => {
          if (held === null) return;
          const data = incidentMessageOf(held.value);
          const { org_id, incident_id: id } = held.value;
          take({ kind: 'message', org_id, topic: 'incidents', event: 'incident', id, data });
        }),
      evals: (take) =>
        evals.onChange((record) => {
          const { eval_id, judge_id, status, progress, ended_at } = evalItemOf(record);
          const data = { eval_id, judge_id, status, progress, ended_at };
          take({ kind: 'message', org_id: record.org_id, topic: 'evals', event: 'eval', id: eval_id, data });
        }),
      jobs: (take) =>
        jobs.onChange((job) => {
          if (job === null) return;
          const { org_id, job_id: id } = job;
          take({ kind: 'message', org_id, topic: 'jobs', event: 'job', id, data: jobView.parse(job) });
        }),
    },
    readTraces: (org_id, trace_ids, filters, signal) =>
      readChangedTraces(clickhouse, org_id, trace_ids, filters, signal),
    settled: () => log.nc.flush().catch(() => undefined),
    onSlow: () => {
      onProblem('a live stream was cut off: its client left more than 1 MiB unread', undefined);
    },
    onProblem,
  });
  const routes = liveRoutes<ListFilters>({
    hub,
    filterParams: liveFilters,
    filterOf: (org_id, query) =>
      Object.values(query).every((value) => value === undefined) ? null : filtersOf(org_id, query),
    present: (caller, keyHash) => {
      if (caller.kind === 'api_key') return keys.byHash(keyHash)?.credential ?? null;
      const role = orgs.roleOf(caller.org_id, caller.user_id);
      return role === null ? null : { ...caller, role };
    },
  });
  return {
    routes,
    drain: () => {
      hub.drain();
    },
  };
}

/** Returns what a platform event changes. */
function* signalsOf({ event_id, event, org_id, payload }: ServiceEvent): Iterable<LiveSignal> {
  if (event === 'trace.started' || event === 'trace.completed') {
    const { trace_id } = JSON.parse(payload) as { trace_id: string };
    yield { kind: 'trace', org_id, trace_id, complete: event === 'trace.completed' };
  } else if (BUDGET_EVENTS.has(event))
    yield { kind: 'message', org_id, topic: 'budgets', event: 'budget', id: event_id, data: JSON.parse(payload) };
}

/** Follows the connection, as long as it lasts: what happened while it was down was not heard. */
function reconnects(nc: WiringParts['log']['nc']): LiveSource {
  const takers = new Set<() => void>();
  const follow = async (): Promise<void> => {
    for await (const { type } of nc.status()) if (type === 'reconnect') for (const take of takers) take();
  };
  void follow();
  return (take) => {
    const lost = () => {
      take({ kind: 'lost' });
    };
    takers.add(lost);
    return () => takers.delete(lost);
  };
}

function incidentMessageOf(record: IncidentRecord): IncidentMessage {
  const { incident_id, cluster_id, agent_id, root_span_name, error, opened, closed, opened_at } = record;
  const { trace_count } = closed ?? opened;
  return {
    incident_id,
    cluster_id,
    status: closed === null ? 'open' : 'resolved',
    severity: severityOf(trace_count),
    agent_id: agent_id === '' ? null : agent_id,
    root_span_name: root_span_name === '' ? null : root_span_name,
    error,
    trace_count,
    opened_at,
    resolved_at: closed?.at ?? null,
  };
}
