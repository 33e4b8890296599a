// Negative acknowledgements with a delay, sent in batches. nats-server waits 10 ms longer before it
// looks for due messages each time such a message arrives, so a steady trickle of them from all
// workers would keep it from ever looking. Every worker therefore sends them together, at whole
// multiples of EVERY_MS of the clock.
import type { JsMsg } from '@nats-io/jetstream';

const EVERY_MS = 250;

interface DelayedNak {
  message: JsMsg;
  /** On the monotonic clock, milliseconds. */
  due_at: number;
  onSent: () => void;
}

export class NakBatch {
  readonly #isClosed: () => boolean;
  #delayed: DelayedNak[] = [];
  #timer: NodeJS.Timeout | null = null;

  /**
   * @param isClosed returns true once the connection is closed: sending would throw, and the server
   * redelivers the messages anyway
   */
  constructor(isClosed: () => boolean) {
    this.#isClosed = isClosed;
  }

  /**
   * Adds a message to the next batch.
   * @param delayMs milliseconds from now after which the server is to redeliver it
   * @param onSent called once the negative acknowledgement has been sent
   */
  add(message: JsMsg, delayMs: number, onSent: () => void): void {
    this.#delayed.push({ message, due_at: performance.now() + delayMs, onSent });
    this.#timer ??= setTimeout(
      () => {
        this.flush();
      },
      EVERY_MS - (Date.now() % EVERY_MS),
    );
  }

  /** Returns a message to its queue at once: without a delay it costs the server nothing. */
  now(message: JsMsg, onSent: () => void): void {
    if (!this.#isClosed()) message.nak();
    onSent();
  }

  /** Sends the batch now. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const now = performance.now();
    for (const { message, due_at, onSent } of this.#delayed.splice(0)) {
      onSent();
      if (this.#isClosed()) continue;
      // The server ignores a delay that is not a whole number of milliseconds.
      if (due_at > now) message.nak(Math.ceil(due_at - now));
      else message.nak();
    }
  }
}
