// Publishes log messages and hears their confirmations on one subscription of our own: a fifth of the cost of the client's
// own publish, which the one-event requests need. Knows nothing of batches, retries or deadlines.
import { INGEST_STREAM } from '../../../schemas/streams.ts';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { createInbox, headers as newHeaders } from '@nats-io/transport-node';
import { ingestBatchCodec, FINGERPRINT_HEADER } from '../../../schemas/codec.ts';

/** Why the log did not take a message. */
export type PublishFailure =
  /** The log holds all that it may: the sender has to wait. */
  | { kind: 'full'; detail: string }
  /** Anything else: no stream, a failing disk, an answer that makes no sense. */
  | { kind: 'failed'; detail: string };

/** A message that is stored. */
export interface Stored {
  kind: 'stored';
  /** Sequence of the message in the log. */
  seq: number;
}

/** Called at most once. */
export type Settle = (outcome: Stored | PublishFailure) => void;

/** What the publisher needs of the log. */
export interface LogPort {
  /** Whether a publish can reach the server at all now. */
  readonly connected: boolean;
  /**
   * Sends a message. Sent twice with one id, it is stored once, and either confirmation settles it.
   * @throws Error when it cannot even be sent
   */
  publish(id: string, subject: string, payload: Uint8Array, settle: Settle): void;
  /** Forgets a message: a confirmation that still comes settles nothing. */
  forget(id: string): void;
}

const STORE_FULL = 10077;
const TOO_MANY_REQUESTS = 10167;
const NO_RESPONDERS = 503;
/** A cluster that changes its leader has nobody who takes a message for a moment: it is offered again after this, until it is forgotten. */
const NO_LEADER_RETRY_MS = 50;

interface Waiting {
  settle: Settle;
  send: () => void;
}

/** The log behind a NATS connection. */
export class AckInbox implements LogPort {
  readonly #nc: NatsConnection;
  readonly #tracked: { readonly connected: boolean };
  readonly #inbox: string;
  readonly #waiting = new Map<string, Waiting>();

  constructor(nc: NatsConnection, tracked: { readonly connected: boolean }) {
    this.#nc = nc;
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
    this.#waiting.set(id, { settle, send });
    send();
  }

  forget(id: string): void {
    this.#waiting.delete(id);
  }

  #hear(message: Msg): void {
    const id = message.subject.slice(this.#inbox.length + 1);
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    if (message.headers?.code === NO_RESPONDERS && message.data.length === 0) {
      setTimeout(() => {
        if (this.#waiting.get(id) === waiting && this.connected && !this.#nc.isClosed()) waiting.send();
      }, NO_LEADER_RETRY_MS);
      return;
    }
    this.#waiting.delete(id);
    waiting.settle(readAck(message));
  }
}

/** What JetStream says of a publish. */
export function readAck(message: Pick<Msg, 'headers' | 'data' | 'string'>): Stored | PublishFailure {
  if (message.data.length === 0)
    return { kind: 'failed', detail: `no stream took the message (${String(message.headers?.code ?? 0)})` };
  let ack: unknown;
  try {
    ack = JSON.parse(message.string());
  } catch {
    return { kind: 'failed', detail: 'the confirmation is not JSON' };
  }
  if (typeof ack !== 'object' || ack === null) return { kind: 'failed', detail: 'the confirmation is no object' };
  if ('error' in ack) return readAckError(ack.error);
  if ('stream' in ack && ack.stream === INGEST_STREAM && 'seq' in ack && typeof ack.seq === 'number' && ack.seq > 0)
    return { kind: 'stored', seq: ack.seq };
  return { kind: 'failed', detail: 'the confirmation is not of the ingest log' };
}

function readAckError(error: unknown): PublishFailure {
  const { err_code: code, description } = (typeof error === 'object' && error !== null ? error : {}) as {
    err_code?: unknown;
    description?: unknown;
  };
  const detail = `${String(code)} ${String(description)}`;
  // The code of a full stream is also that of a store that failed to write; only the text tells them apart.
  const full = (code === STORE_FULL && /maximum/.test(String(description))) || code === TOO_MANY_REQUESTS;
  return { kind: full ? 'full' : 'failed', detail };
}
