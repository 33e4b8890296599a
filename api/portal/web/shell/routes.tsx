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
import { type ComponentType, lazy } from 'react';
import { queryClient, readAhead } from '../client/query_client.ts';
import { outlineQuery, spanQuery } from '../screens/trace/trace_api.ts';

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
  return { path, title, permission, load, screen: lazy(load), ...(ahead === undefined ? {} : { preload: ahead }) };
}

/** Pages without an organization; they show no rail. */
export const OUTER_ROUTES: readonly Route[] = [
  page('/login', 'Log in', null, () => import('../screens/login/login_screen.tsx')),
];

/** Pages of an organization. The first path that matches is taken. */
export const ORG_ROUTES: readonly Route[] = [
  page(ORG, 'Home', 'traces:read', () => import('../screens/home/home_screen.tsx')),
  page(`${ORG}/start`, 'Send data', null, () => import('../screens/start/start_screen.tsx')),
  page(`${ORG}/traces`, 'Traces', 'traces:read', () => import('../screens/traces/traces_screen.tsx')),
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
  page(`${ORG}/me`, 'Preferences', null, () => import('../screens/me/me_screen.tsx')),
];
