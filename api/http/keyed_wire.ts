// The two calls of a KV bucket that every keyed ingest request makes, create and get, on one
// subscription of its own. The client's calls cost several times as much CPU, because each creates
// headers, errors and subscription bookkeeping. Knows nothing of what is stored; all other calls go
// through the client.
import { createInbox, headers as newHeaders, type Msg, type NatsConnection } from '@nats-io/transport-node';
import { JetStreamApiError } from '@nats-io/jetstream';

const NOT_FOUND = 404;
const NO_RESPONDERS = 503;

export interface WireEntry {
  text: string;
  revision: number;
}

/** Response of STREAM.MSG.GET; headers and data are base64. */
interface LeaderAnswer {
  message?: { seq: number; data?: string; hdrs?: string };
  error?: { code: number; err_code: number; description: string };
}

interface Waiting {
  resolve: (message: Msg) => void;
  reject: (error: Error) => void;
  timer: NodeJS.Timeout;
}

export class KeyedWire {
  readonly #nc: NatsConnection;
  readonly #bucket: string;
  readonly #inbox = createInbox();
  readonly #waiting = new Map<string, Waiting>();
  readonly #mustNotExist = newHeaders();
  #calls = 0;
  /**
   * True if any replica may answer reads. A bucket with several replicas reads from its leader
   * only, because the others may be behind.
   */
  #direct = true;

  constructor(nc: NatsConnection, bucket: string) {
    this.#nc = nc;
    this.#bucket = bucket;
    this.#mustNotExist.set('Nats-Expected-Last-Subject-Sequence', '0');
    nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#hear(message);
      },
    });
  }

  /**
   * Creates a key that never existed and whose deletion the bucket does not remember.
   * @returns its revision
   * @throws JetStreamApiError as the client would; Error when no response arrived in time
   */
  async create(key: string, text: string, withinMs: number): Promise<number> {
    const answer = await this.#call(`$KV.${this.#bucket}.${key}`, text, withinMs, true);
    if (answer.headers?.code === NO_RESPONDERS) throw new Error('no stream answered');
    const ack = answer.json<{ seq?: unknown; error?: { code: number; err_code: number; description: string } }>();
    if (ack.error !== undefined) throw new JetStreamApiError(ack.error);
    if (typeof ack.seq !== 'number' || ack.seq < 1) throw new Error('the acknowledgement names no revision');
    return ack.seq;
  }

  /**
   * Returns the value of a key; null where it does not exist or was deleted.
   * @throws Error when no response arrived in time
   */
  async get(key: string, withinMs: number): Promise<WireEntry | null> {
    const stream = `KV_${this.#bucket}`;
    if (!this.#direct) return this.#getFromLeader(stream, key, withinMs);
    const answer = await this.#call(`$JS.API.DIRECT.GET.${stream}.$KV.${this.#bucket}.${key}`, '', withinMs, false);
    const { headers } = answer;
    if (headers?.code === NO_RESPONDERS) {
      this.#direct = false;
      return this.#getFromLeader(stream, key, withinMs);
    }
    if (headers?.code === NOT_FOUND || (headers?.has('KV-Operation') ?? false)) return null;
    const revision = Number(headers?.get('Nats-Sequence'));
    if (headers?.get('Nats-Stream') !== stream || !(revision > 0))
      throw new Error(`the store answered ${String(headers?.code)}`);
    return { text: answer.string(), revision };
  }

  async #getFromLeader(stream: string, key: string, withinMs: number): Promise<WireEntry | null> {
    const question = JSON.stringify({ last_by_subj: `$KV.${this.#bucket}.${key}` });
    const answer = await this.#call(`$JS.API.STREAM.MSG.GET.${stream}`, question, withinMs, false);
    if (answer.headers?.code === NO_RESPONDERS) throw new Error('no stream answered');
    const { message, error } = answer.json<LeaderAnswer>();
    if (error?.code === NOT_FOUND) return null;
    if (error !== undefined) throw new JetStreamApiError(error);
    if (message === undefined) throw new Error('the response holds no record');
    if (Buffer.from(message.hdrs ?? '', 'base64').includes('KV-Operation')) return null;
    return { text: Buffer.from(message.data ?? '', 'base64').toString(), revision: message.seq };
  }

  #call(subject: string, text: string, withinMs: number, making: boolean): Promise<Msg> {
    const id = (++this.#calls).toString(36);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Error(`no answer within ${withinMs} ms`));
      }, withinMs);
      this.#waiting.set(id, { resolve, reject, timer });
      try {
        this.#nc.publish(subject, text, {
          reply: `${this.#inbox}.${id}`,
          ...(making ? { headers: this.#mustNotExist } : {}),
        });
      } catch (cause) {
        this.#waiting.delete(id);
        clearTimeout(timer);
        reject(cause instanceof Error ? cause : new Error(String(cause)));
      }
    });
  }

  #hear(message: Msg): void {
    const id = message.subject.slice(this.#inbox.length + 1);
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    clearTimeout(waiting.timer);
    waiting.resolve(message);
  }
}
