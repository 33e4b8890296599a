// The root of the pages: the cache, the table of routes, the session and the frame.
import { QueryClientProvider } from '@tanstack/react-query';
import { type ReactElement, type ReactNode, useEffect, useMemo } from 'react';
import { Redirect } from 'wouter';
import { usePathname } from 'wouter/use-browser-location';
import { RequestError } from '../client/error.ts';
import { type Grant, grantedOn } from '../client/granted.ts';
import { queryClient } from '../client/query_client.ts';
import {
  organizationOf,
  OrganizationContext,
  type Session,
  type SessionOrg,
  useOrganization,
  useSession,
} from '../client/session.ts';
import NotFoundScreen from '../screens/not_found/not_found_screen.tsx';
import { EmptyState } from '../ui/empty_state.tsx';
import { ErrorPanel } from '../ui/error_panel.tsx';
import { beginPage } from './begin_page.ts';
import { ErrorBoundary } from './error_boundary.tsx';
import { Frame } from './frame.tsx';
import { lastOrg } from './last_org.ts';
import { LoginDialog } from './login_dialog.tsx';
import { matchRoute } from './match_route.ts';
import styles from './page.module.css';
import { PagesContext } from './pages_context.ts';
import { RouteParamsContext } from './route_params.ts';
import { ORG_ROUTES, OUTER_ROUTES, type Route, type RouteParams } from './routes.tsx';

const HOME = '/o/:org_id';
const PAGES: ReadonlySet<string> = new Set(ORG_ROUTES.map(({ path }) => path));

/** Renders the portal. */
export function App(): ReactElement {
  return (
    <QueryClientProvider client={queryClient}>
      <Pages />
      <LoginDialog />
    </QueryClientProvider>
  );
}

function Pages(): ReactElement {
  const path = usePathname();
  const outer = matchRoute(OUTER_ROUTES, path);
  if (outer !== null) return <Page key={outer.route.path} route={outer.route} params={outer.params} />;
  if (path === '/') return <WithSession>{(session) => <FirstPage session={session} />}</WithSession>;
  const org_id = /^\/o\/([^/]+)/.exec(path)?.[1];
  if (org_id === undefined) return <NotFoundScreen />;
  return <WithSession>{(session) => <OrgPages session={session} org_id={decodeURIComponent(org_id)} />}</WithSession>;
}

/** Shows its children to a person who is logged in; others go to the login page and come back. */
function WithSession({ children }: { children: (session: Session) => ReactNode }): ReactNode {
  const { data, error, refetch } = useSession();
  if (data !== undefined) return children(data);
  if (error === null) return null;
  if (error instanceof RequestError && error.status === 401) {
    const to = location.pathname + location.search;
    return <Redirect to={to === '/' ? '/login' : `/login?to=${encodeURIComponent(to)}`} replace />;
  }
  return (
    <main className={`${styles.page ?? ''} ${styles.outer ?? ''}`}>
      <ErrorPanel error={error} what="your session" onRetry={() => void refetch()} />
    </main>
  );
}

/** Returns the first page of an organization: the registry of agents for a person who may not read traces. */
function startOf(org: SessionOrg): string {
  const { org_id, can } = organizationOf(org);
  return `/o/${encodeURIComponent(org_id)}${can('traces:read') ? '' : '/agents'}`;
}

/** Leads to the organization that was shown last, or to the first one. */
function FirstPage({ session }: { session: Session }): ReactElement {
  const last = lastOrg();
  const org = session.orgs.find(({ org_id }) => org_id === last) ?? session.orgs[0];
  if (org !== undefined) return <Redirect to={startOf(org)} replace />;
  return (
    <main className={`${styles.page ?? ''} ${styles.outer ?? ''}`}>
      <h1>No organization yet</h1>
      <EmptyState title="You are a member of no organization">
        An owner or admin of an organization can invite {session.email ?? session.user_id}. Open the link of the
        invitation, and its pages appear here.
      </EmptyState>
    </main>
  );
}

function OrgPages({ session, org_id }: { session: Session; org_id: string }): ReactElement {
  const path = usePathname();
  const org = session.orgs.find((one) => one.org_id === org_id);
  const organization = useMemo(() => (org === undefined ? null : organizationOf(org)), [org]);
  if (organization === null) return <NotFoundScreen />;
  const match = matchRoute(ORG_ROUTES, path);
  return (
    <OrganizationContext value={organization}>
      <PagesContext value={PAGES}>
        <Frame title={match?.route.title ?? 'No such page'}>
          {match === null ? (
            <NotFoundScreen framed />
          ) : (
            <Permitted route={match.route} params={match.params} grants={org?.grants ?? []}>
              <Page key={match.route.path} route={match.route} params={match.params} />
            </Permitted>
          )}
        </Frame>
      </PagesContext>
    </OrganizationContext>
  );
}

interface PermittedProps {
  route: Route;
  params: RouteParams;
  grants: readonly Grant[];
  children: ReactNode;
}

/**
 * Shows a page to a person whose role, or a grant on the thing that the page shows, permits it, and explains it to
 * others. On that page the grant counts as the role does.
 */
function Permitted({ route, params, grants, children }: PermittedProps): ReactNode {
  const organization = useOrganization();
  const granted = useMemo(() => grantedOn(grants, params), [grants, params]);
  const own = useMemo(
    () => ({ ...organization, can: (permission: string) => organization.can(permission) || granted.has(permission) }),
    [organization, granted],
  );
  const { org_id, name, can } = own;
  if (route.permission === null || can(route.permission))
    return <OrganizationContext value={own}>{children}</OrganizationContext>;
  // Home shows traces; the start of a person who may not read them is the registry of agents.
  if (route.path === HOME && can('agents:read'))
    return <Redirect to={`/o/${encodeURIComponent(org_id)}/agents`} replace />;
  return (
    <div className={styles.page}>
      <EmptyState title={`Your role in ${name} may not read this page`}>
        {route.title} needs the permission <code>{route.permission}</code>. An owner of the organization can change your
        role, or share a single thing with you.
      </EmptyState>
    </div>
  );
}

function Page({ route, params }: { route: Route; params: RouteParams }): ReactElement {
  const Screen = route.screen;
  const path = usePathname();
  const { org_id } = params;
  useEffect(() => {
    beginPage(route, params);
    // A change within one page is the screen's own matter.
  }, [route, org_id]);
  return (
    <RouteParamsContext value={params}>
      <ErrorBoundary path={path}>
        <Screen />
      </ErrorBoundary>
    </RouteParamsContext>
  );
}
