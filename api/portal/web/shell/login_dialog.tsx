// The dialog over the page when the session has ended in the middle of work. After the login the
// requests that failed run again, and nothing that was typed is lost.
import { type ReactElement, useEffect, useSyncExternalStore } from 'react';
import { get } from '../client/api.ts';
import { personLogin } from '../client/login_wait.ts';
import { refreshSession } from '../client/session.ts';
import { providerLogin, useLoginWays } from '../screens/login/provider_login.ts';
import { TokenForm } from '../screens/login/token_form.tsx';
import { Dialog } from '../ui/dialog.tsx';

/** Asks the service, in case another tab has logged in, and lets the waiting requests run. */
async function continueIfLoggedIn(): Promise<void> {
  try {
    await get(null, '/v1/session', {}, { throw401: true });
  } catch {
    return;
  }
  personLogin.begin();
  await refreshSession();
}

/** The dialog, while the session has ended. */
export function LoginDialog(): ReactElement | null {
  const ended = useSyncExternalStore(personLogin.onChange, personLogin.hasEnded);
  useEffect(() => {
    if (!ended) return undefined;
    const check = (): void => void continueIfLoggedIn();
    addEventListener('focus', check);
    return () => {
      removeEventListener('focus', check);
    };
  }, [ended]);
  return ended ? <EndedDialog /> : null;
}

function EndedDialog(): ReactElement {
  const ways = useLoginWays();
  return (
    <Dialog title="Your session has ended">
      <TokenForm
        onDone={() => {
          void continueIfLoggedIn();
        }}
      >
        <p>
          This page goes on where it is once you are logged in again. On a service of your own machine,{' '}
          <code>npm run login</code> prints a link: open it in another tab and come back.
        </p>
        {ways.includes('oidc') && (
          <p>
            <a href={providerLogin('/')} target="_blank" rel="noreferrer">
              Log in at the identity provider in another tab
            </a>{' '}
            and come back.
          </p>
        )}
      </TokenForm>
    </Dialog>
  );
}
