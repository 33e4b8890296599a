// Wires the slices that read telemetry: traces, sessions, spans, scores, sampling, costs,
// incidents, the audit log, and the SQL of analysts.
import type { Upstream } from '../../ops/platform/llm/upstream.ts';
import { queueScore } from '../../ops/exchange/score_queue.ts';
import { pendingScoreQueue } from './pending_scores.ts';
import { OrgSlots } from '../http/org_slots.ts';
import type { Route } from '../http/route.ts';
import type { WrittenAnswers } from '../http/written_answers.ts';
import type { BodyRecorder } from '../intake/ingest/store.ts';
import { type Analysts, openAnalysts } from '../telemetry/analysts/open.ts';
import { QUERIES_ORG_MAX } from '../telemetry/analytics/analytics.ts';
import { analyticsRoutes } from '../telemetry/analytics/routes.ts';
import { auditRoutes } from '../telemetry/audit/routes.ts';
import { costRoutes } from '../telemetry/costs/routes.ts';
import { incidentRoutes } from '../telemetry/incidents/routes.ts';
import { samplingRoutes } from '../telemetry/sampling/routes.ts';
import { scoreRoutes } from '../telemetry/scores/routes.ts';
import { newestScores } from '../telemetry/scores/scores.ts';
import { sessionListRoutes } from '../telemetry/sessions/routes.ts';
import type { DocumentSearch } from '../telemetry/spans/postings/document_search.ts';
import { spanRoutes } from '../telemetry/spans/routes.ts';
import { oneTraceRoutes } from '../telemetry/trace/routes.ts';
import { SCORES_MAX } from '../telemetry/trace/schema.ts';
import { locateInShard } from '../telemetry/traces/locate.ts';
import { REPLAYS_ORG_MAX } from '../telemetry/traces/replay.ts';
import { traceRoutes } from '../telemetry/traces/routes.ts';
import type { WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';

export interface TelemetryDeps {
  written: WrittenAnswers;
  /** The model endpoint that replays call; null where none is configured. */
  upstream: Upstream | null;
  /** Stores the spans of replays. */
  recorder: BodyRecorder;
  documents: DocumentSearch;
}

/** Returns the routes of the telemetry slices, except those of analysts. */
export function telemetryRoutes(
  { env, log, store, clickhouse, now, onProblem }: WiringParts,
  stores: Stores,
  { written, upstream, recorder, documents }: TelemetryDeps,
): Route[] {
  const { agents, policies, piiPolicies, costs, prompts, incidents } = stores;
  const policyOf = (org_id: string) => policies.get(org_id);
  const { ofTrace } = store;
  const locate = (org_id: string, trace_id: string, signal: AbortSignal) =>
    locateInShard({ clickhouse, ofTrace }, org_id, trace_id, signal);
  return [
    traceRoutes({
      clickhouse,
      ofTrace,
      findByWords: (query, signal) => documents.traces(query, signal),
      written,
      exporterOf: (org_id) => piiPolicies.exporter(org_id),
      policyOf,
      promptOf: (org_id, name) => prompts.newest(org_id, name),
      upstream,
      replaySlots: new OrgSlots(REPLAYS_ORG_MAX),
      recorder,
      now,
    }),
    sessionListRoutes({ clickhouse, now }),
    spanRoutes({ clickhouse, documents }),
    analyticsRoutes({ clickhouse, slots: new OrgSlots(QUERIES_ORG_MAX), now }),
    scoreRoutes({
      clickhouse,
      locate,
      queue: (score) => queueScore(log, score),
      queuePending: pendingScoreQueue(log),
      now,
    }),
    samplingRoutes({ settings: env, clickhouse, now }),
    costRoutes({
      clickhouse,
      settings: costs,
      agentMetadata: (org_id, agent_id) => agents.get(org_id, agent_id)?.metadata ?? null,
      policyOf,
      now,
    }),
    incidentRoutes({ clickhouse, incidents, now, onProblem }),
    auditRoutes({ clickhouse, now }),
    // Last of the traces' routes: its path /v1/traces/{trace_id} also fits /v1/traces/facets and the like.
    oneTraceRoutes({
      ofTrace,
      written,
      locate,
      scoresOf: (org_id, trace_id, signal) => newestScores(clickhouse, { org_id, trace_id, rows: SCORES_MAX }, signal),
      completeRule: { graceMs: env.SERVICE_TRACE_GRACE_MS, idleMs: env.SERVICE_TRACE_IDLE_MS },
      now,
    }),
  ].flat();
}

/** Opens the slice that serves the SQL queries of analysts; the caller closes it. */
export function openAnalystSlice({ env, store, now, onProblem }: WiringParts, { analysts, orgs }: Stores): Analysts {
  return openAnalysts({
    analysts,
    store,
    cluster: env.SERVICE_CLICKHOUSE_CLUSTER,
    hasOrg: (org_id) => orgs.get(org_id) !== null,
    now,
    onProblem,
  });
}
