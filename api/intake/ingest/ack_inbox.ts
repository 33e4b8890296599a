// Publishes messages to the ingest log and receives their acknowledgements on one subscription of
// its own, at a fifth of the cost of the client's publish; requests of one event need that. Knows
// nothing of batches, retries or deadlines.
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { createInbox, headers as newHeaders } from '@nats-io/transport-node';
import { ingestBatchCodec, FINGERPRINT_HEADER } from '../../../schemas/codec.ts';

/** The reason why the log did not store a message. */
export type PublishFailure =
  /** The log is full: the sender has to wait. */
  | { kind: 'full'; detail: string }
  /** Any other reason: no stream, a failing disk, an unreadable acknowledgement. */
  | { kind: 'failed'; detail: string };

/** A stored message. */
export interface Stored {
  kind: 'stored';
  /** Position of the message in the log. */
  position: number;
}

/** Returns the position of a message by stream and sequence; undefined if the stream is none of the log. */
export type PositionOf = (stream: string, seq: number) => number | undefined;

/** Called at most once. */
export type Settle = (outcome: Stored | PublishFailure) => void;

/** The part of the log that the publisher uses. */
export interface LogPort {
  /** True while a publish can reach the server. */
  readonly connected: boolean;
  /**
   * Sends a message. Sent twice with one id, the message is stored once, and either acknowledgement
   * settles it.
   * @throws Error when the message cannot be sent
   */
  publish(id: string, subject: string, payload: Uint8Array, settle: Settle): void;
  /** Forgets a message: a later acknowledgement settles nothing. */
  forget(id: string): void;
}

const STORE_FULL = 10077;
const TOO_MANY_REQUESTS = 10167;
const NO_RESPONDERS = 503;
/**
 * While a cluster elects a leader, no server takes messages. A message is sent again after this
 * long, until it is forgotten.
 */
const NO_LEADER_RETRY_MS = 50;

interface Waiting {
  id: string;
  settle: Settle;
  send: () => void;
}

/** The ingest log behind a NATS connection. */
export class AckInbox implements LogPort {
  readonly #nc: NatsConnection;
  readonly #tracked: { readonly connected: boolean };
  readonly #positionOf: PositionOf;
  readonly #inbox: string;
  /** In an array, because the publisher has few messages in flight, and because of what bag.ts says of a Map. */
  readonly #waiting: Waiting[] = [];

  constructor(nc: NatsConnection, tracked: { readonly connected: boolean }, positionOf: PositionOf) {
    this.#nc = nc;
    this.#positionOf = positionOf;
    this.#tracked = tracked;
    this.#inbox = createInbox();
    nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#hear(message);
      },
    });
  }

  get connected(): boolean {
    return this.#tracked.connected;
  }

  publish(id: string, subject: string, payload: Uint8Array, settle: Settle): void {
    const headers = newHeaders();
    headers.set('Nats-Msg-Id', id);
    headers.set(FINGERPRINT_HEADER, ingestBatchCodec.fingerprint);
    const send = (): void => {
      this.#nc.publish(subject, payload, { reply: `${this.#inbox}.${id}`, headers });
    };
    this.forget(id);
    this.#waiting.push({ id, settle, send });
    send();
  }

  forget(id: string): void {
    const at = this.#waiting.findIndex((waiting) => waiting.id === id);
    if (at >= 0) this.#waiting.splice(at, 1);
  }

  #hear(message: Msg): void {
    const id = message.subject.slice(this.#inbox.length + 1);
    const waiting = this.#waiting.find((one) => one.id === id);
    if (waiting === undefined) return;
    if (message.headers?.code === NO_RESPONDERS && message.data.length === 0) {
      setTimeout(() => {
        if (this.#waiting.includes(waiting) && this.connected && !this.#nc.isClosed()) waiting.send();
      }, NO_LEADER_RETRY_MS);
      return;
    }
    this.forget(id);
    waiting.settle(readAck(message, this.#positionOf));
  }
}

/** Returns what a JetStream acknowledgement says. */
export function readAck(
  message: Pick<Msg, 'headers' | 'data' | 'string'>,
  positionOf: PositionOf,
): Stored | PublishFailure {
  if (message.data.length === 0)
    return { kind: 'failed', detail: `no stream stored the message (${message.headers?.code ?? 0})` };
  let ack: unknown;
  try {
    ack = JSON.parse(message.string());
  } catch {
    return { kind: 'failed', detail: 'the acknowledgement is not JSON' };
  }
  if (typeof ack !== 'object' || ack === null)
    return { kind: 'failed', detail: 'the acknowledgement is not an object' };
  if ('error' in ack) return readAckError(ack.error);
  const { stream, seq } = ack as { stream?: unknown; seq?: unknown };
  const position =
    typeof stream === 'string' && typeof seq === 'number' && seq > 0 ? positionOf(stream, seq) : undefined;
  if (position !== undefined) return { kind: 'stored', position };
  return { kind: 'failed', detail: 'the acknowledgement is not from the ingest log' };
}

function readAckError(error: unknown): PublishFailure {
  const { err_code: code, description } = (typeof error === 'object' && error !== null ? error : {}) as {
    err_code?: unknown;
    description?: unknown;
  };
  const detail = `${String(code)} ${String(description)}`;
  // A full stream and a store that failed to write have the same code; only the text distinguishes
  // them.
  const full = (code === STORE_FULL && /maximum/.test(String(description))) || code === TOO_MANY_REQUESTS;
  return { kind: full ? 'full' : 'failed', detail };
}
