// The table of pages: path, title, permission and the screen, which is loaded when it is needed. A
// screen is the default export of its file, takes no properties, and reads its parts of the address
// with useRouteParams (shell/route_params.ts), its organization with useOrganization
// (client/session.ts) and the query string with useSearchState (url/use_search_state.ts). The frame
// shows the title as the one h1 (usePageTitle names it more exactly), so headings of a screen begin
// with h2. useKeys registers shortcuts, usePageRequest names the request that `y` copies. The
// screen fills the height of the frame and scrolls by itself where it has rows.
//
// The first requests of a screen need no session, because the address names the organization. A file
// of a screen may export `preload`, which runs as soon as its chunk is there. The `preload` of a route
// runs before that; it belongs to the frame's own chunk, so it stays small.
import type { ComponentType } from 'react';
import { noteFailure, serviceAnswers } from '../client/health.ts';
import { queryClient, readAhead } from '../client/query_client.ts';
import { beginTraces } from '../lists/begin_traces.ts';
import { outlineQuery, spanQuery } from '../screens/trace/trace_api.ts';
import { deferred } from '../ui/deferred.tsx';

/** Parts of an address that a path names, decoded. */
export type RouteParams = Readonly<Record<string, string>>;

export interface PreloadContext {
  org_id: string;
  params: RouteParams;
  /** Query string of the address. */
  search: string;
}
export type Preload = (context: PreloadContext) => void;

export interface Route {
  /** Path in wouter's form; a parameter is one segment. */
  path: string;
  /** Name of the page for the title of the document and the crumbs. */
  title: string;
  /** Permission without which the page explains who may read it; null where every person may. */
  permission: string | null;
  /** Loads the chunk of the screen; repeated calls load it once. */
  load: () => Promise<{ default: ComponentType; preload?: Preload }>;
  screen: ComponentType;
  /** Starts the first requests of the screen. */
  preload?: Preload;
}

const ORG = '/o/:org_id';

function page(path: string, title: string, permission: string | null, load: Route['load'], ahead?: Preload): Route {
  return {
    path,
    title,
    permission,
    load,
    screen: deferred(
      () => patient(load),
      () => <div aria-busy="true" />,
    ),
    ...(ahead === undefined ? {} : { preload: ahead }),
  };
}

/**
 * Loads a screen. While the service is away it waits, and then tries once more; a chunk that is missing nevertheless
 * belongs to another version of the portal, and the page needs a reload.
 */
async function patient(load: Route['load']): ReturnType<Route['load']> {
  try {
    return await load();
  } catch {
    noteFailure({ status: 0, code: 'network' });
    await serviceAnswers();
    return load();
  }
}

/** Pages without an organization; they show no rail. */
export const OUTER_ROUTES: readonly Route[] = [
  page('/login', 'Log in', null, () => import('../screens/login/login_screen.tsx')),
  page('/invite', 'Invite', null, () => import('../screens/invite/invite_screen.tsx')),
  page('/transfer', 'Transfer of ownership', null, () => import('../screens/transfer/transfer_screen.tsx')),
  page('/operator', 'Operator', null, () => import('../screens/operator/operator_screen.tsx')),
  page('/operator/:section', 'Operator', null, () => import('../screens/operator/operator_screen.tsx')),
];

/** Pages of an organization. The first path that matches is taken. */
export const ORG_ROUTES: readonly Route[] = [
  page(ORG, 'Home', 'traces:read', () => import('../screens/home/home_screen.tsx')),
  page(`${ORG}/start`, 'Send data', null, () => import('../screens/start/start_screen.tsx')),
  page(
    `${ORG}/traces`,
    'Traces',
    'traces:read',
    () => import('../screens/traces/traces_screen.tsx'),
    ({ org_id, search }) => {
      beginTraces(org_id, search);
    },
  ),
  page(
    `${ORG}/traces/:trace_id`,
    'Trace',
    'traces:read',
    () => import('../screens/trace/trace_screen.tsx'),
    ({ org_id, params: { trace_id = '' }, search }) => {
      const span_id = new URLSearchParams(search).get('span') ?? '';
      readAhead(queryClient.query(outlineQuery(org_id, trace_id)));
      if (span_id !== '') readAhead(queryClient.query(spanQuery(org_id, trace_id, span_id)));
    },
  ),
  page(
    `${ORG}/compare/:a/:b`,
    'Compare traces',
    'traces:read',
    () => import('../screens/compare/compare_screen.tsx'),
    ({ org_id, params }) => {
      for (const id of [params.a, params.b]) queryClient.query(outlineQuery(org_id, id ?? '')).catch(() => undefined);
    },
  ),
  page(`${ORG}/search`, 'Search', 'traces:read', () => import('../screens/search/search_screen.tsx')),
  page(`${ORG}/sessions`, 'Sessions', 'traces:read', () => import('../screens/sessions/sessions_screen.tsx')),
  page(`${ORG}/sessions/:id`, 'Session', 'traces:read', () => import('../screens/sessions/session_screen.tsx')),
  page(`${ORG}/users`, 'Users', 'traces:read', () => import('../screens/sessions/users_screen.tsx')),
  page(`${ORG}/users/:id`, 'User', 'traces:read', () => import('../screens/sessions/user_screen.tsx')),
  page(`${ORG}/evals`, 'Evals', 'judges:read', () => import('../screens/evals/evals_screen.tsx')),
  page(
    `${ORG}/evals/compare/:a/:b`,
    'Compare evals',
    'judges:read',
    () => import('../screens/evals/compare_screen.tsx'),
  ),
  page(`${ORG}/evals/:eval_id`, 'Eval', 'judges:read', () => import('../screens/evals/eval_screen.tsx')),
  page(`${ORG}/prompts`, 'Prompts', 'prompts:read', () => import('../screens/prompts/prompts_screen.tsx')),
  page(`${ORG}/prompts/:name`, 'Prompt', 'prompts:read', () => import('../screens/prompts/prompt_screen.tsx')),
  page(`${ORG}/annotate`, 'Annotate', 'traces:read', () => import('../screens/annotate/annotate_screen.tsx')),
  page(`${ORG}/annotate/:queue_id`, 'Queue', 'traces:read', () => import('../screens/annotate/queue_screen.tsx')),
  page(
    `${ORG}/annotate/:queue_id/label`,
    'Label',
    'ingest:write',
    () => import('../screens/annotate/label_screen.tsx'),
  ),
  page(`${ORG}/judges`, 'Judges', 'judges:read', () => import('../screens/judges/judges_screen.tsx')),
  page(`${ORG}/judges/new`, 'New judge', 'judges:write', () => import('../screens/judges/new_judge_screen.tsx')),
  page(`${ORG}/judges/:judge_id`, 'Judge', 'judges:read', () => import('../screens/judges/judge_screen.tsx')),
  page(`${ORG}/costs`, 'Costs', 'costs:read', () => import('../screens/costs/costs_screen.tsx')),
  page(`${ORG}/costs/:section`, 'Costs', 'costs:read', () => import('../screens/costs/costs_screen.tsx')),
  page(`${ORG}/datasets`, 'Datasets', 'datasets:read', () => import('../screens/datasets/datasets_screen.tsx')),
  page(
    `${ORG}/datasets/:dataset_id`,
    'Dataset',
    'datasets:read',
    () => import('../screens/datasets/dataset_screen.tsx'),
  ),
  page(`${ORG}/settings`, 'Settings', 'org:read', () => import('../screens/settings/settings_screen.tsx')),
  page(`${ORG}/settings/:section`, 'Settings', 'org:read', () => import('../screens/settings/settings_screen.tsx')),
  page(`${ORG}/incidents`, 'Incidents', 'traces:read', () => import('../screens/incidents/incidents_screen.tsx')),
  page(
    `${ORG}/incidents/:incident_id`,
    'Incident',
    'traces:read',
    () => import('../screens/incidents/incident_screen.tsx'),
  ),
  page(`${ORG}/webhooks`, 'Webhooks', 'webhooks:read', () => import('../screens/webhooks/webhooks_screen.tsx')),
  page(
    `${ORG}/webhooks/dead-letters`,
    'Dead letters',
    'webhooks:read',
    () => import('../screens/webhooks/letters_screen.tsx'),
  ),
  page(`${ORG}/webhooks/:id`, 'Endpoint', 'webhooks:read', () => import('../screens/webhooks/webhook_screen.tsx')),
  page(`${ORG}/agents`, 'Agents', 'agents:read', () => import('../screens/agents/agents_screen.tsx')),
  page(`${ORG}/agents/:agent_id`, 'Agent', 'agents:read', () => import('../screens/agents/agent_screen.tsx')),
  page(`${ORG}/audit`, 'Audit log', 'audit:view', () => import('../screens/audit/audit_screen.tsx')),
  page(`${ORG}/jobs`, 'Jobs', 'jobs:read', () => import('../screens/jobs/jobs_screen.tsx')),
  page(`${ORG}/jobs/:job_id`, 'Job', 'jobs:read', () => import('../screens/jobs/job_screen.tsx')),
  page(`${ORG}/monitors`, 'Monitors', 'traces:read', () => import('../screens/monitors/monitors_screen.tsx')),
  page(
    `${ORG}/monitors/new`,
    'New monitor',
    'integrations:write',
    () => import('../screens/monitors/new_monitor_screen.tsx'),
  ),
  page(`${ORG}/monitors/:monitor_id`, 'Monitor', 'traces:read', () => import('../screens/monitors/monitor_screen.tsx')),
  page(`${ORG}/shared`, 'Shared with me', null, () => import('../screens/shared/shared_screen.tsx')),
  page(`${ORG}/me`, 'Preferences', null, () => import('../screens/me/me_screen.tsx')),
];
