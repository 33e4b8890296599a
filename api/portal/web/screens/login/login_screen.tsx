// Log in. A link that `npm start` or `npm run login` prints carries a one-time ticket in its
// fragment, which no log and no referrer contains: the page takes it out of the address, posts it,
// and gets the session cookie. Elsewhere a token of the identity provider is pasted.
import { type ReactElement, useEffect, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { refreshSession } from '../../client/session.ts';
import pages from '../../shell/page.module.css';
import { useShownTitle } from '../../shell/page_title.ts';
import { cx } from '../../ui/cx.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Mark } from './brand_mark.tsx';
import styles from './login.module.css';
import { LoginWays } from './login_ways.tsx';
import { ownPath } from './own_path.ts';

/** Takes the ticket out of the address, so that it stays neither in the history nor on the screen. */
function takeTicket(): string {
  const ticket = location.hash.slice(1);
  if (ticket !== '') history.replaceState(null, '', location.pathname + location.search);
  return ticket;
}

/** The ticket of this page load; a second render must not find it gone. */
const ticket = location.pathname === '/login' ? takeTicket() : '';

/** Returns the path that was asked for before the login. */
const asked = (): string => ownPath(new URLSearchParams(location.search).get('to'), location.origin);

async function enter(): Promise<void> {
  await refreshSession();
  navigate(asked(), { replace: true });
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
        {!pending && error === null && <RefusedAtProvider />}
        {!pending && <LoginWays to={asked()} onDone={() => void enter()} />}
      </div>
    </main>
  );
}

const REFUSALS: Readonly<Record<string, string>> = {
  denied: 'The identity provider did not log you in. Log in again, or ask who runs the provider.',
  expired:
    'The login at the identity provider took longer than ten minutes, or began in another browser. Log in again.',
  failed: 'The login at the identity provider failed. Try again; if it fails again, the log of the service says why.',
};

/** Says why a login at the identity provider led back here. */
function RefusedAtProvider(): ReactElement | null {
  const text = REFUSALS[new URLSearchParams(location.search).get('refused') ?? ''];
  return text === undefined ? null : (
    <p role="alert" className={styles.text}>
      {text}
    </p>
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
