// Log in. A link that `npm start` or `npm run login` prints carries a one-time ticket in its
// fragment, which no log and no referrer contains: the page takes it out of the address, posts it,
// and gets the session cookie. Elsewhere a token of the identity provider is pasted.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useEffect, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { apiQuery, send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { refreshSession } from '../../client/session.ts';
import pages from '../../shell/page.module.css';
import { useShownTitle } from '../../shell/page_title.ts';
import { cx } from '../../ui/cx.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Mark } from './brand_mark.tsx';
import styles from './login.module.css';
import { ownPath } from './own_path.ts';
import { TokenForm } from './token_form.tsx';

/** Takes the ticket out of the address, so that it stays neither in the history nor on the screen. */
function takeTicket(): string {
  const ticket = location.hash.slice(1);
  if (ticket !== '') history.replaceState(null, '', location.pathname + location.search);
  return ticket;
}

/** The ticket of this page load; a second render must not find it gone. */
const ticket = location.pathname === '/login' ? takeTicket() : '';

async function enter(): Promise<void> {
  await refreshSession();
  navigate(ownPath(new URLSearchParams(location.search).get('to'), location.origin), { replace: true });
}

let posted: Promise<unknown> | null = null;

/** Posts the ticket once. */
function postTicket(): Promise<unknown> {
  posted ??= send(null, 'post', '/v1/session/ticket', { body: { ticket }, throw401: true });
  return posted;
}

/** The page. */
export default function LoginScreen(): ReactElement {
  useShownTitle('Log in');
  const about = useQuery({ ...apiQuery(null, '/v1/about', {}), staleTime: Infinity });
  const [error, setError] = useState<unknown>(null);
  const [pending, setPending] = useState(ticket !== '');
  useEffect(() => {
    if (ticket === '') return;
    postTicket()
      .then(enter)
      .catch((thrown: unknown) => {
        setError(thrown);
        setPending(false);
      });
  }, []);
  const ways: readonly string[] = about.data?.data.login ?? [];
  return (
    <main id="main" className={cx(pages.page, pages.outer)}>
      <p className={styles.brand}>
        <Mark />
        Millrace
      </p>
      <div className={styles.card}>
        <h1>Log in</h1>
        {pending && (
          <div aria-busy="true">
            <p>Logging in with the link …</p>
            <Skeleton rows={2} />
          </div>
        )}
        {error !== null && <Refused error={error} />}
        {!pending && ways.includes('ticket') && (
          <div className={styles.text}>
            <p>
              On the machine where the service runs, <code>npm start</code> prints a login link, and{' '}
              <code>npm run login</code> prints another one. A link works once, within ten minutes.
            </p>
          </div>
        )}
        {!pending && <TokenForm onDone={() => void enter()} />}
      </div>
    </main>
  );
}

/** Says why the link did not work; a used or expired link is the usual reason. */
function Refused({ error }: { error: unknown }): ReactElement {
  const used = error instanceof RequestError && [401, 403, 404, 410].includes(error.status);
  if (!used) return <ErrorPanel error={error} what="your session" />;
  return (
    <div role="alert">
      <h2>This link does not work any more</h2>
      <p className={styles.text}>
        {error.detail} Run <code>npm run login</code> for a new link.
      </p>
    </div>
  );
}
