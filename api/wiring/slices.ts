// Joins the slices: each takes what it needs of the others as functions, and returns its routes.
import { openUpstream } from '../../ops/platform/llm/upstream.ts';
import { WebhookDeadLetters } from '../../ops/exchange/webhook_queue.ts';
import type { Refusals } from '../../ops/exchange/refusals.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import type { Sealer } from '../../ops/platform/sealing.ts';
import { AgentActivity } from '../control/agents/activity.ts';
import { agentRoutes } from '../control/agents/routes.ts';
import { RegisterTokens } from '../control/agents/tokens.ts';
import { viewRoutes } from '../control/views/routes.ts';
import { webhookRoutes } from '../control/webhooks/routes.ts';
import type { Route } from '../http/route.ts';
import type { SessionTokens } from '../http/session_token.ts';
import { WrittenAnswers } from '../http/written_answers.ts';
import { refusalRoutes } from '../intake/refusals/routes.ts';
import type { BodyRecorder } from '../intake/ingest/store.ts';
import type { Analysts } from '../telemetry/analysts/open.ts';
import { openAnnotation } from './annotation.ts';
import { openLive } from './live.ts';
import { judgingRoutes } from './judging.ts';
import { jobSliceRoutes, orgSliceRoutes } from './organizations.ts';
import { isDevelopment, type WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';
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
  /** Routes of budgets. */
  budgetRoutes: readonly Route[];
  /** Stores the events that the API process records itself. */
  recorder: BodyRecorder;
  /** Refused ingest requests. */
  refusals: Refusals;
}

/** Wires every slice but budgets, which admission needs first. */
export async function openSlices(parts: WiringParts, stores: Stores, deps: SlicesDeps): Promise<Slices> {
  const { env, log, clickhouse, now, onProblem } = parts;
  const { sealer, sessions, budgetRoutes, recorder } = deps;
  const { agents, webhooks } = stores;
  const written = new WrittenAnswers();
  const analysts = openAnalystSlice(parts, stores);
  const live = openLive(parts, stores);
  const annotation = openAnnotation(parts, stores);
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
      telemetryRoutes(parts, stores, { written, upstream, recorder }),
      live.routes,
      refusalRoutes(deps),
      judgingRoutes(parts, stores, written),
      agentRoutes({
        agents,
        tokens: new RegisterTokens(await log.bucket('register_tokens'), now),
        lastSeen: (org_id, agent_id) => activity.lastSeen(org_id, agent_id),
        now,
      }),
      budgetRoutes,
      viewRoutes({ views: stores.views, now }),
      annotation.routes,
      orgSliceRoutes(parts, stores, { sealer, sessions }),
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
