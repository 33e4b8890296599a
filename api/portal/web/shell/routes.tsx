// The table of pages: path, title, permission and the screen, which is loaded when it is needed. A
// screen is the default export of its file, takes no properties, and reads its parts of the address
// with useRouteParams (shell/route_params.ts), its organization with useOrganization
// (client/session.ts) and the query string with useSearchState (url/use_search_state.ts). The frame
// shows the title as the one h1 (usePageTitle names it more exactly), so headings of a screen begin
// with h2. useKeys registers shortcuts, usePageRequest names the request that `y` copies. The
// screen fills the height of the frame and scrolls by itself where it has rows.
//
// `preload` starts the requests of a screen while its chunk is still on the way. It belongs to the
// frame's own chunk, so keep it in a small file: screens/<area>/preload.ts.
import { type ComponentType, lazy } from 'react';
import { queryClient } from '../client/query_client.ts';
import { outlineQuery } from '../screens/trace/trace_api.ts';

/** Parts of an address that a path names, decoded. */
export type RouteParams = Readonly<Record<string, string>>;

export interface Route {
  /** Path in wouter's form; a parameter is one segment. */
  path: string;
  /** Name of the page for the title of the document and the crumbs. */
  title: string;
  /** Permission without which the page explains who may read it; null where every person may. */
  permission: string | null;
  /** Loads the chunk of the screen; repeated calls load it once. */
  load: () => Promise<{ default: ComponentType }>;
  screen: ComponentType;
  /** Starts the requests of the screen. */
  preload?: (context: { org_id: string; params: RouteParams; search: string }) => void;
}

const ORG = '/o/:org_id';

function page(
  path: string,
  title: string,
  permission: string | null,
  load: Route['load'],
  preload?: Route['preload'],
): Route {
  return { path, title, permission, load, screen: lazy(load), ...(preload === undefined ? {} : { preload }) };
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
    ({ org_id, params }) => {
      // The screen shows the error.
      queryClient.query(outlineQuery(org_id, params.trace_id ?? '')).catch(() => undefined);
    },
  ),
  page(`${ORG}/search`, 'Search', 'traces:read', () => import('../screens/search/search_screen.tsx')),
  page(`${ORG}/sessions`, 'Sessions', 'traces:read', () => import('../screens/sessions/sessions_screen.tsx')),
  page(`${ORG}/sessions/:id`, 'Session', 'traces:read', () => import('../screens/sessions/session_screen.tsx')),
  page(`${ORG}/users`, 'Users', 'traces:read', () => import('../screens/sessions/users_screen.tsx')),
  page(`${ORG}/users/:id`, 'User', 'traces:read', () => import('../screens/sessions/user_screen.tsx')),
  page(`${ORG}/me`, 'Preferences', null, () => import('../screens/me/me_screen.tsx')),
];
