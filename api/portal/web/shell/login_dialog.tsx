// The dialog over the page when the session has ended in the middle of work. After the login the
// requests that failed run again, and nothing that was typed is lost.
import { type ReactElement, useEffect, useSyncExternalStore } from 'react';
import { get } from '../client/api.ts';
import { hasSessionEnded, onSessionChange, sessionBegun } from '../client/login_wait.ts';
import { refreshSession } from '../client/session.ts';
import { TokenForm } from '../screens/login/token_form.tsx';
import { Dialog } from '../ui/dialog.tsx';

/** Asks the service, in case another tab has logged in, and lets the waiting requests run. */
async function continueIfLoggedIn(): Promise<void> {
  try {
    await get(null, '/v1/session', {}, { throw401: true });
  } catch {
    return;
  }
  sessionBegun();
  await refreshSession();
}

/** The dialog, while the session has ended. */
export function LoginDialog(): ReactElement | null {
  const ended = useSyncExternalStore(onSessionChange, hasSessionEnded);
  useEffect(() => {
    if (!ended) return undefined;
    const check = (): void => void continueIfLoggedIn();
    addEventListener('focus', check);
    return () => {
      removeEventListener('focus', check);
    };
  }, [ended]);
  if (!ended) return null;
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
      </TokenForm>
    </Dialog>
  );
}
