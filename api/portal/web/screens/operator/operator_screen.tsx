// The operator's pages: organizations, scheduled jobs, the pipeline, dead letters, analysts and repricing. They have a
// login of their own, with the operator token, and a top bar in its own colour, so that nobody takes them for the pages
// of an organization.
import { useQuery } from '@tanstack/react-query';
import { type ComponentType, type ReactElement, useEffect, useState, useSyncExternalStore } from 'react';
import { Link, Redirect } from 'wouter';
import { get, send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { operatorLogin } from '../../client/login_wait.ts';
import { queryClient } from '../../client/query_client.ts';
import { BannerLine } from '../../shell/banner.tsx';
import { ErrorBoundary } from '../../shell/error_boundary.tsx';
import { KeysOverlay } from '../../shell/keys_overlay.tsx';
import frame from '../../shell/frame.module.css';
import pages from '../../shell/page.module.css';
import { useShownTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { deferred } from '../../ui/deferred.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Toasts } from '../../ui/toast.tsx';
import { OPERATOR, TokenForm } from '../login/token_form.tsx';
import login from '../login/login.module.css';
import { useOperatorKeys } from './operator_keys.ts';
import styles from './operator.module.css';
import { SECTIONS } from './sections.ts';

const section = (load: () => Promise<{ default: ComponentType }>): ComponentType =>
  deferred(load, () => <div aria-busy="true" />);

const SCREENS = {
  orgs: section(() => import('./orgs_page.tsx')),
  jobs: section(() => import('./jobs_page.tsx')),
  pipeline: section(() => import('./pipeline_page.tsx')),
  'dead-letters': section(() => import('./dead_letters_page.tsx')),
  analysts: section(() => import('./analysts_page.tsx')),
  repricing: section(() => import('./repricing_page.tsx')),
} as const satisfies Record<(typeof SECTIONS)[number]['id'], unknown>;

const SESSION = {
  queryKey: [null, '/admin/session', {}] as const,
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const session = await get(null, '/admin/session', {}, { signal, throw401: true });
    operatorLogin.seen();
    return session;
  },
  staleTime: 60_000,
};

/** The pages, behind the login. */
export default function OperatorScreen(): ReactElement {
  const section = useRouteParams()('section');
  const session = useQuery(SESSION);
  if (section === '') return <Redirect to="/operator/orgs" replace />;
  if (session.data !== undefined) return <Frame section={section} expires_at={session.data.data.expires_at} />;
  const { error } = session;
  if (error === null) return <main id="main" aria-busy="true" />;
  if (error instanceof RequestError && error.status === 401) return <LoginPage />;
  return (
    <main id="main" className={cx(pages.page, pages.outer)}>
      <h1>Operator</h1>
      <ErrorPanel error={error} what="the operator's session" onRetry={() => void session.refetch()} />
    </main>
  );
}

const readSession = (): Promise<void> => queryClient.refetchQueries({ queryKey: SESSION.queryKey });

function LoginPage(): ReactElement {
  useShownTitle('Operator');
  return (
    <main id="main" className={cx(pages.page, pages.outer)}>
      <p className={styles.mark}>Operator of this service</p>
      <div className={login.card}>
        <h1>Operator</h1>
        <TokenForm login={OPERATOR} onDone={() => void readSession()} />
        <p className={login.text}>
          These pages are for the people who run the service. The pages of an organization have{' '}
          <Link href="/login">a login of their own</Link>.
        </p>
      </div>
    </main>
  );
}

function Frame({ section, expires_at }: { section: string; expires_at: string | null }): ReactElement {
  const known = SECTIONS.find(({ id }) => id === section);
  const title = useShownTitle(known?.title ?? 'No such page');
  const [showsKeys, setShowsKeys] = useState(false);
  useOperatorKeys(() => {
    setShowsKeys(true);
  });
  const Screen = known === undefined ? null : SCREENS[known.id];
  return (
    <div className={frame.frame}>
      <a className={frame.skip} href="#main">
        Skip to content
      </a>
      <div className={frame.column}>
        <TopBar section={section} />
        <BannerLine expires_at={expires_at} />
        <main id="main" tabIndex={-1} className={frame.main}>
          <h1 className={styles.title}>{title}</h1>
          <ErrorBoundary path={section}>{Screen === null ? <NoSuchPage /> : <Screen />}</ErrorBoundary>
        </main>
      </div>
      <Toasts />
      <OperatorLoginDialog />
      {showsKeys && (
        <KeysOverlay
          onClose={() => {
            setShowsKeys(false);
          }}
        />
      )}
    </div>
  );
}

function NoSuchPage(): ReactElement {
  return (
    <div className={styles.page}>
      <EmptyState title="The operator has no such page">Choose one of the pages above.</EmptyState>
    </div>
  );
}

function TopBar({ section }: { section: string }): ReactElement {
  return (
    <header className={styles.bar}>
      <p className={styles.who}>Operator</p>
      <nav aria-label="Pages of the operator" className={styles.links}>
        {SECTIONS.map(({ id, title, key }) => (
          <Link
            key={id}
            href={`/operator/${id}`}
            className={styles.link}
            title={`${title} (g ${key})`}
            aria-current={id === section ? 'page' : undefined}
          >
            {title}
          </Link>
        ))}
      </nav>
      <Button look="quiet" icon="logout" className={styles.logout} onClick={() => void logOut()}>
        Log out
      </Button>
    </header>
  );
}

/** Ends the session; nothing that was read stays in the page. */
async function logOut(): Promise<void> {
  await send(null, 'delete', '/admin/session', { throw401: true });
  queryClient.clear();
  location.assign('/operator');
}

/** Asks the service, in case another tab has logged in, and lets the waiting requests run. */
async function goOn(): Promise<void> {
  try {
    await get(null, '/admin/session', {}, { throw401: true });
  } catch {
    return;
  }
  operatorLogin.begin();
  await readSession();
}

/** The dialog over the page when the session has ended in the middle of work. */
function OperatorLoginDialog(): ReactElement | null {
  const ended = useSyncExternalStore(operatorLogin.onChange, operatorLogin.hasEnded);
  useEffect(() => {
    if (!ended) return undefined;
    const check = (): void => void goOn();
    addEventListener('focus', check);
    return () => {
      removeEventListener('focus', check);
    };
  }, [ended]);
  if (!ended) return null;
  return (
    <Dialog title="The operator's session has ended">
      <TokenForm login={OPERATOR} onDone={() => void goOn()}>
        <p>This page goes on where it is once you are logged in again. Nothing that was typed is lost.</p>
      </TokenForm>
    </Dialog>
  );
}
