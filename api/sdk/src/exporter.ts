// Sends bodies of spans to the service. A body that the service does not take at once is written to
// the spool, and sent from there before newer ones when the service answers again. It is therefore
// on the disk whenever it is waiting for more than one try.
import { gzip } from 'node:zlib';
import { promisify } from 'node:util';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { MillraceError } from './errors.ts';
import { isTransient, waitFor, waitMs } from './retry.ts';
import type { Spool } from './spool.ts';

const compress = promisify(gzip);
/** Smaller bodies are sent as they are. */
const COMPRESSED_BYTES_MIN = 1024;
const TIMEOUT_MS = 10_000;
/** Tries of a body without a spool, and tries of the oldest spooled body in one turn. */
const TRIES_MAX = 5;

export interface ExporterOptions {
  /** Address of the service, without a path. */
  url: string;
  apiKey: string;
  /** Without one, a body that is not taken after some tries is dropped. */
  spool: Spool | null;
  onError: (error: MillraceError) => void;
  fetch?: typeof fetch;
}

/** Counts of bodies. */
export interface Sent {
  sent: number;
  spooled: number;
  dropped: number;
  /** Spans of a body that was taken which the service rejected. */
  rejectedSpans: number;
}

type Outcome =
  | { taken: true; rejectedSpans: number }
  | { taken: false; again: boolean; error: MillraceError; retryAfter: string | null };

/** Sends bodies one after the other. */
export class Exporter {
  readonly #options: ExporterOptions;
  readonly #stop = new AbortController();
  #turn: Promise<unknown> = Promise.resolve();
  #drainAt = 0;
  #failures = 0;

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  /** Sends a body, or keeps it in the spool. Never rejects. */
  send(body: Uint8Array): Promise<Sent> {
    const turn = this.#turn.then(() => this.#send(body));
    this.#turn = turn;
    return turn;
  }

  /** Sends spooled bodies until one is not taken. Never rejects. */
  drain(): Promise<number> {
    const turn = this.#turn.then(() => this.#drain());
    this.#turn = turn;
    return turn;
  }

  /** Ends waits; bodies that are not taken go to the spool. */
  stop(): void {
    this.#stop.abort();
  }

  async #send(body: Uint8Array): Promise<Sent> {
    const { spool } = this.#options;
    if (spool === null) return this.#sendWithoutSpool(body);
    // A newer body would overtake spooled ones, and be refused by a service that is away.
    if (this.#failures > 0 && Date.now() < this.#drainAt) return this.#spool(spool, body, null);
    const outcome = await this.#post(body);
    if (outcome.taken) {
      this.#failures = 0;
      await this.#drain();
      return { sent: 1, spooled: 0, dropped: 0, rejectedSpans: outcome.rejectedSpans };
    }
    if (!outcome.again) return this.#dropped(outcome.error);
    this.#failures += 1;
    this.#drainAt = Date.now() + waitMs(this.#failures, outcome.retryAfter);
    return this.#spool(spool, body, outcome.error);
  }

  async #spool(spool: Spool, body: Uint8Array, reason: MillraceError | null): Promise<Sent> {
    try {
      await spool.add(body);
      if (reason !== null)
        this.#options.onError(
          new MillraceError(`${reason.message}; spans are kept on the disk until the service answers`, {
            cause: reason,
          }),
        );
      return { sent: 0, spooled: 1, dropped: 0, rejectedSpans: 0 };
    } catch (cause) {
      return this.#dropped(new MillraceError(`spans could not be kept on the disk: ${messageOf(cause)}`, { cause }));
    }
  }

  async #sendWithoutSpool(body: Uint8Array): Promise<Sent> {
    for (let tries = 1; ; tries += 1) {
      const outcome = await this.#post(body);
      if (outcome.taken) return { sent: 1, spooled: 0, dropped: 0, rejectedSpans: outcome.rejectedSpans };
      if (!outcome.again || tries === TRIES_MAX || this.#stop.signal.aborted) return this.#dropped(outcome.error);
      await waitFor(waitMs(tries, outcome.retryAfter), this.#stop.signal).catch(() => undefined);
    }
  }

  #dropped(error: MillraceError): Sent {
    this.#options.onError(error);
    return { sent: 0, spooled: 0, dropped: 1, rejectedSpans: 0 };
  }

  async #drain(): Promise<number> {
    const { spool, onError } = this.#options;
    if (spool === null) return 0;
    let sent = 0;
    for (const entry of await spool.entries()) {
      const body = await spool.read(entry);
      if (body === null) continue;
      const outcome = await this.#post(body);
      if (outcome.taken) sent += 1;
      else if (outcome.again) break;
      else onError(outcome.error);
      await spool.remove(entry);
    }
    return sent;
  }

  /** Reports spans that the service rejected while it took the others. @returns their number */
  #rejectedOf(answer: Uint8Array): number {
    const partial = partialSuccessOf(answer);
    if (partial === null || partial.rejectedSpans === 0) return 0;
    const { rejectedSpans, errorMessage } = partial;
    this.#options.onError(
      new MillraceError(`the service rejected ${rejectedSpans} spans: ${printable(errorMessage)}`, { status: 200 }),
    );
    return rejectedSpans;
  }

  async #post(body: Uint8Array): Promise<Outcome> {
    const { url, apiKey, fetch: ask = fetch } = this.#options;
    const packed = body.length < COMPRESSED_BYTES_MIN ? null : await compress(body);
    try {
      const answer = await ask(`${url}/v1/traces`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/x-protobuf',
          ...(packed === null ? {} : { 'content-encoding': 'gzip' }),
        },
        body: packed ?? body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (answer.ok) {
        return { taken: true, rejectedSpans: this.#rejectedOf(new Uint8Array(await answer.arrayBuffer())) };
      }
      const said = printable(await answer.text());
      const error = new MillraceError(`the service answered ${answer.status} to spans: ${said}`, {
        status: answer.status,
      });
      return { taken: false, again: mayPass(answer.status), error, retryAfter: answer.headers.get('retry-after') };
    } catch (cause) {
      const error = new MillraceError(`the service at ${url} does not answer: ${messageOf(cause)}`, { cause });
      return { taken: false, again: true, error, retryAfter: null };
    }
  }
}

/** Returns what the service says about spans that it rejected; null for nothing, or another answer. */
function partialSuccessOf(body: Uint8Array): { rejectedSpans: number; errorMessage: string } | null {
  try {
    const { partialSuccess } = ProtobufTraceSerializer.deserializeResponse(body);
    if (partialSuccess === undefined) return null;
    const { rejectedSpans, errorMessage } = partialSuccess;
    return { rejectedSpans: rejectedSpans ?? 0, errorMessage: errorMessage ?? '' };
  } catch {
    return null;
  }
}

const printable = (text: string): string => text.replaceAll(/[^\x20-\x7e]+/g, ' ').slice(0, 200);

/** A budget (402) opens again, so its spans wait like those of a service that is away. */
const mayPass = (status: number): boolean => status === 402 || isTransient(status);

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message;
}
