// Gives messages back to their queue, to come again later. All that come up meanwhile are given back together, every so often
// and at whole multiples of the clock: each nak with a delay makes nats-server wait 10 ms more before it looks for what is
// due, so a steady trickle of them, from whichever workers, would keep it from ever looking.
import type { JsMsg } from '@nats-io/jetstream';

const EVERY_MS = 250;

interface Later {
  message: JsMsg;
  due_at: number;
  onGiven: () => void;
}

export class NakBatch {
  readonly #isClosed: () => boolean;
  readonly #now: () => number;
  #later: Later[] = [];
  #timer: NodeJS.Timeout | null = null;

  /** @param isClosed whether the connection is: on a closed one a nak would throw, and the messages come again by themselves */
  constructor(isClosed: () => boolean, now: () => number) {
    this.#isClosed = isClosed;
    this.#now = now;
  }

  /** @param onGiven called when the message is out of our hands */
  add(message: JsMsg, delayMs: number, onGiven: () => void): void {
    this.#later.push({ message, due_at: this.#now() + delayMs, onGiven });
    this.#timer ??= setTimeout(
      () => {
        this.flush();
      },
      EVERY_MS - (Date.now() % EVERY_MS),
    );
  }

  /** Gives back all that is held, now. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const now = this.#now();
    for (const { message, due_at, onGiven } of this.#later.splice(0)) {
      onGiven();
      if (this.#isClosed()) continue;
      // The server takes whole milliseconds only: of others it makes none at all.
      if (due_at > now) message.nak(Math.ceil(due_at - now));
      else message.nak();
    }
  }
}
