// The state "the session has ended", which the login dialog shows, and the requests that wait until
// somebody has logged in again. Pure: the dialog subscribes.

type Listener = () => void;
const listeners = new Set<Listener>();
let ended = false;
let seen = false;
let login = Promise.withResolvers<undefined>();

/** Records that the person is logged in. Before that a refusal leads to the login page, not to the dialog. */
export function sessionSeen(): void {
  seen = true;
}

/** Returns true once the person was logged in on this page. */
export const hadSession = (): boolean => seen;

/** Records that the service refused the session; the login dialog opens. */
export function sessionEnded(): void {
  if (ended) return;
  ended = true;
  login = Promise.withResolvers();
  for (const listener of listeners) listener();
}

/** Records a login; the dialog closes and the requests that waited run again. */
export function sessionBegun(): void {
  if (!ended) return;
  ended = false;
  login.resolve(undefined);
  for (const listener of listeners) listener();
}

export const hasSessionEnded = (): boolean => ended;

/** Calls a listener after each change; returns the function that ends that. */
export function onSessionChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Resolves after the next login, at once when the session has not ended.
 * @throws the reason of the signal when it aborts first
 */
export async function waitForLogin(signal?: AbortSignal): Promise<void> {
  if (!ended) return;
  if (signal === undefined) {
    await login.promise;
    return;
  }
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => {
    aborted.reject(signal.reason as Error);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([login.promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
