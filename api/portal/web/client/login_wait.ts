// The state "the session has ended", which a login dialog shows, and the requests that wait until somebody has logged
// in again. A person's session and the operator's are two of them. Pure: the dialogs subscribe.

type Listener = () => void;

export class LoginWait {
  readonly #listeners = new Set<Listener>();
  #ended = false;
  #seen = false;
  #login = Promise.withResolvers<undefined>();

  /** Records that somebody is logged in. Before that a refusal leads to the login page, not to the dialog. */
  readonly seen = (): void => {
    this.#seen = true;
  };

  /** Returns true once somebody was logged in on this page. */
  readonly hadSession = (): boolean => this.#seen;

  /** Records that the service refused the session; the login dialog opens. */
  readonly end = (): void => {
    if (this.#ended) return;
    this.#ended = true;
    this.#login = Promise.withResolvers();
    for (const listener of this.#listeners) listener();
  };

  /** Records a login; the dialog closes and the requests that waited run again. */
  readonly begin = (): void => {
    if (!this.#ended) return;
    this.#ended = false;
    this.#login.resolve(undefined);
    for (const listener of this.#listeners) listener();
  };

  readonly hasEnded = (): boolean => this.#ended;

  /** Calls a listener after each change; returns the function that ends that. */
  readonly onChange = (listener: Listener): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Resolves after the next login, at once when the session has not ended.
   * @throws the reason of the signal when it aborts first
   */
  async wait(signal?: AbortSignal): Promise<void> {
    if (!this.#ended) return;
    if (signal === undefined) {
      await this.#login.promise;
      return;
    }
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const onAbort = (): void => {
      aborted.reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.race([this.#login.promise, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }
}

/** The session of the person. */
export const personLogin = new LoginWait();
/** The session of the operator. */
export const operatorLogin = new LoginWait();
