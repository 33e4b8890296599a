// The way of an upstream's answer to the caller: bytes as they arrive, at the pace of the slower side.
// An upstream that is silent for its timeout, and a caller that reads nothing for STALL_MS, end the
// exchange. Nothing is sent to the caller before the first bytes of the answer, so that another
// upstream can still be asked; a short answer is sent only when it is complete.
import type { ServerResponse } from 'node:http';
import type { UpstreamAnswer } from './upstream.ts';

/** A caller that reads nothing for this long is considered gone. */
const STALL_MS = 120_000;
/** Maximum bytes of an answer that is held until it is decided on; a longer one is withheld. */
const HELD_BYTES_MAX = 8 * 1024 * 1024;
/** Maximum bytes of an answer, other than a stream, that is buffered until it is complete. */
const BUFFERED_BYTES_MAX = 256 * 1024;

/**
 * How an exchange ended. lost: the upstream closed the connection or never answered; gone: the
 * caller disconnected.
 */
export type Ending = 'complete' | 'lost' | 'timeout' | 'gone';

/** How the answer of a call ended for the caller. withheld: a guard blocks it. */
export type RelayEnding = Ending | 'withheld';

export interface RelayOptions {
  timeout_ms: number;
  /** True if the answer is passed on piece by piece from its first bytes. */
  streamed: boolean;
  /**
   * Sends the head. Called once, before the first byte, with the length where the whole body is
   * known.
   */
  begin: (length: number | null) => void;
  /** Takes bytes of the answer and returns those for the caller. */
  take: (chunk: Buffer) => Buffer;
  /** Returns the last bytes for the caller when the answer is complete. */
  rest: () => Buffer;
  /**
   * Decides on the whole answer before the caller gets any of it: returns the bytes for the caller,
   * or null to withhold the answer. Null: answers are not held.
   */
  decide: ((whole: Buffer | null) => Buffer | null) | null;
}

/** How an answer was passed on. */
export interface Relayed {
  ending: RelayEnding;
  /** True once the caller has got any of the answer. */
  begun: boolean;
}

/**
 * Passes an answer on. Resolves when the answer has ended and all of it has been written to the
 * connection of the caller.
 */
export function relay(answer: UpstreamAnswer, res: ServerResponse, options: RelayOptions): Promise<Relayed> {
  return new Relay(answer, res, options).ended;
}

class Relay {
  readonly #answer: UpstreamAnswer;
  readonly #res: ServerResponse;
  readonly #options: RelayOptions;
  readonly #ended = Promise.withResolvers<Relayed>();
  /**
   * Ends the relay: the upstream is silent for its timeout, or the caller reads nothing for
   * STALL_MS.
   */
  #timer: NodeJS.Timeout;
  #begun = false;
  #done = false;
  /** Pieces of a short answer, until it is whole. */
  #buffered: Buffer[] = [];
  #bufferedBytes = 0;
  /** True while the connection of the caller takes no more. */
  #stalled = false;

  constructor(answer: UpstreamAnswer, res: ServerResponse, options: RelayOptions) {
    this.#answer = answer;
    this.#res = res;
    this.#options = options;
    this.#timer = this.#awaitUpstream();
    res.on('close', this.#onGone).on('drain', this.#onDrain);
    answer.passTo({
      data: (chunk) => {
        this.#take(chunk);
      },
      end: () => {
        this.#finish();
      },
      lost: () => {
        this.#settle('lost');
      },
    });
    if (res.destroyed) this.#onGone();
  }

  get ended(): Promise<Relayed> {
    return this.#ended.promise;
  }

  #awaitUpstream(): NodeJS.Timeout {
    return setTimeout(() => {
      this.#settle('timeout');
    }, this.#options.timeout_ms);
  }

  #take(chunk: Buffer): void {
    if (this.#done) return;
    this.#timer.refresh();
    const out = this.#options.take(chunk);
    if (this.#begun) {
      this.#write(out);
      return;
    }
    if (this.#options.decide !== null) {
      this.#bufferedBytes += out.length;
      if (this.#bufferedBytes <= HELD_BYTES_MAX) this.#buffered.push(out);
      else {
        this.#options.decide(null);
        this.#settle('withheld');
      }
      return;
    }
    if (!this.#options.streamed && this.#bufferedBytes + out.length <= BUFFERED_BYTES_MAX) {
      this.#buffered.push(out);
      this.#bufferedBytes += out.length;
      return;
    }
    this.#begun = true;
    this.#options.begin(null);
    for (const piece of this.#buffered) this.#write(piece);
    this.#buffered = [];
    this.#write(out);
  }

  #write(bytes: Buffer): void {
    if (bytes.length === 0 || this.#res.write(bytes) || this.#stalled) return;
    this.#stalled = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onGone, STALL_MS);
    this.#answer.pause();
  }

  readonly #onDrain = (): void => {
    if (!this.#stalled || this.#done) return;
    this.#stalled = false;
    clearTimeout(this.#timer);
    this.#timer = this.#awaitUpstream();
    this.#answer.resume();
  };

  readonly #onGone = (): void => {
    this.#settle('gone');
  };

  #finish(): void {
    if (this.#done) return;
    const last = this.#options.rest();
    if (!this.#begun) {
      const answer = Buffer.concat([...this.#buffered, last]);
      const whole = this.#options.decide === null ? answer : this.#options.decide(answer);
      if (whole === null) {
        this.#settle('withheld');
        return;
      }
      this.#begun = true;
      this.#options.begin(whole.length);
      this.#res.end(whole);
    } else if (last.length > 0) this.#res.end(last);
    else this.#res.end();
    this.#settle('complete');
  }

  #settle(ending: RelayEnding): void {
    if (this.#done) return;
    this.#done = true;
    clearTimeout(this.#timer);
    this.#res.off('close', this.#onGone).off('drain', this.#onDrain);
    if (ending !== 'complete') this.#answer.abort();
    this.#ended.resolve({ ending, begun: this.#begun });
  }
}
