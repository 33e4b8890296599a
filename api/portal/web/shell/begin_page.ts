// Starts the first requests of a page: at the start, when nothing but the address is known, and after a
// navigation, while the chunk of the screen is on the way. A request that the session does not allow
// fails, and the page says so when the session is there.
import { readAhead } from '../client/query_client.ts';
import { matchRoute } from './match_route.ts';
import { ORG_ROUTES, type Route, type RouteParams } from './routes.tsx';

/** Path of the page whose requests were started last. */
let begun: string | null = null;

/** Starts the requests of a page once, until another page is opened. */
export function beginPage(route: Route, params: RouteParams): void {
  const { org_id } = params;
  if (org_id === undefined || begun === location.pathname) return;
  begun = location.pathname;
  const context = { org_id, params, search: location.search };
  route.preload?.(context);
  readAhead(
    route.load().then(({ preload }) => {
      preload?.(context);
    }),
  );
}

/** Starts the requests of the page of the address. */
export function beginFirstPage(): void {
  const match = matchRoute(ORG_ROUTES, location.pathname);
  if (match !== null) beginPage(match.route, match.params);
}
