// Joins the slices: each takes what it needs of the others as functions, and returns its routes.
import { openUpstream } from '../../ops/platform/llm/upstream.ts';
import { WebhookDeadLetters } from '../../ops/exchange/webhook_queue.ts';
import type { Refusals } from '../../ops/exchange/refusals.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import type { Sealer } from '../../ops/platform/sealing.ts';
import { ownerOf } from '../../schemas/records/org.ts';
import { AgentActivity } from '../control/agents/activity.ts';
import { agentRoutes } from '../control/agents/routes.ts';
import { RegisterTokens } from '../control/agents/tokens.ts';
import type { MonitorsDeps } from '../control/monitors/monitors.ts';
import { PREVIEWS_ORG_MAX } from '../control/monitors/preview.ts';
import { monitorRoutes } from '../control/monitors/routes.ts';
import { viewRoutes } from '../control/views/routes.ts';
import { webhookRoutes } from '../control/webhooks/routes.ts';
import { OrgSlots } from '../http/org_slots.ts';
import type { Route } from '../http/route.ts';
import type { SessionTokens } from '../http/session_token.ts';
import { WrittenAnswers } from '../http/written_answers.ts';
import { refusalRoutes } from '../intake/refusals/routes.ts';
import type { BodyRecorder } from '../intake/ingest/store.ts';
import type { Analysts } from '../telemetry/analysts/open.ts';
import { mcpRoutes } from '../mcp/routes.ts';
import { openAnnotation } from './annotation.ts';
import { compatRoutes } from './compat.ts';
import { openLive } from './live.ts';
import { judgingRoutes } from './judging.ts';
import { jobSliceRoutes, operatorSliceRoutes, orgSliceRoutes } from './organizations.ts';
import { isDevelopment, issuerOf, type WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';
import { DocumentSearch } from '../telemetry/spans/postings/document_search.ts';
import { openAnalystSlice, telemetryRoutes } from './telemetry.ts';

export interface Slices {
  routes: Route[];
  /** Serves the SQL queries of analysts. */
  analysts: Analysts['handler'];
  /** Starts following ClickHouse; called once the schema exists. */
  follow: () => void;
  /** Ends the live streams. */
  endLive: () => void;
  close: () => void;
}

export interface SlicesDeps {
  sealer: Sealer;
  /** The service's own session tokens; null where no ticket logs in. */
  sessions: SessionTokens | null;
  /** Resolves once the stored budget of an API key applies in this process, after a bounded time. */
  keyInForce: (org_id: string, key_id: string) => Promise<void>;
  /** Routes of budgets. */
  budgetRoutes: readonly Route[];
  /** Stores the events that the API process records itself. */
  recorder: BodyRecorder;
  /** Refused ingest requests. */
  refusals: Refusals;
  /** The operator's token. */
  adminToken: string;
}

function monitorsDeps({ clickhouse, now }: WiringParts, { monitors, orgs, webhooks }: Stores): MonitorsDeps {
  return {
    clickhouse,
    slots: new OrgSlots(PREVIEWS_ORG_MAX),
    monitors,
    ownerEmailOf: (org_id) => {
      const org = orgs.get(org_id);
      return org === null ? null : ownerOf(org).email;
    },
    hasEndpoint: (org_id, webhook_id) => webhooks.get(org_id, webhook_id) !== null,
    now,
  };
}

/** Wires every slice but budgets, which admission needs first. */
export async function openSlices(parts: WiringParts, stores: Stores, deps: SlicesDeps): Promise<Slices> {
  const { env, log, clickhouse, now, onProblem } = parts;
  const { sealer, sessions, budgetRoutes, recorder, keyInForce } = deps;
  const { agents, webhooks } = stores;
  const written = new WrittenAnswers();
  const documents = new DocumentSearch(clickhouse);
  const analysts = openAnalystSlice(parts, stores);
  const live = openLive(parts, stores);
  const annotation = openAnnotation(parts, stores, documents);
  const activity = new AgentActivity({ clickhouse, agents, onProblem });
  const deadLetters = await WebhookDeadLetters.open(log);
  const upstream = openUpstream({
    base_url: env.SERVICE_LLM_BASE_URL,
    api_key: env.SERVICE_LLM_API_KEY,
    observe: (result, seconds) => {
      metrics.llmCallsTotal.inc({ result });
      metrics.llmCallSeconds.observe(seconds);
    },
  });
  return {
    analysts: analysts.handler,
    routes: [
      analysts.routes,
      telemetryRoutes(parts, stores, { written, upstream, recorder, documents }),
      live.routes,
      refusalRoutes(deps),
      judgingRoutes(parts, stores, written),
      compatRoutes(parts, stores),
      agentRoutes({
        agents,
        clickhouse,
        tokens: new RegisterTokens(await log.bucket('register_tokens'), now),
        lastSeen: (org_id, agent_id) => activity.lastSeen(org_id, agent_id),
        now,
      }),
      budgetRoutes,
      viewRoutes({ views: stores.views, now }),
      monitorRoutes(monitorsDeps(parts, stores)),
      annotation.routes,
      mcpRoutes(issuerOf(env), env.SERVICE_PUBLIC_URL),
      operatorSliceRoutes(parts, deps.adminToken),
      orgSliceRoutes(parts, stores, { sealer, sessions, keyInForce }),
      webhookRoutes({ store: webhooks, deadLetters, sealer, log, clickhouse, development: isDevelopment(parts), now }),
      await jobSliceRoutes(parts, stores, sealer),
    ].flat(),
    endLive: live.drain,
    follow: () => {
      activity.start();
    },
    close: () => {
      activity.close();
      annotation.close();
      analysts.close();
    },
  };
}
