// Heartbeats and a KV bucket in memory with injected faults, for tests of decisions that need no
// server. They behave like the real ones when answers are lost.
import type { KV } from '@nats-io/kv';
import { type NatsConnection, NoRespondersError, RequestError } from '@nats-io/transport-node';
import { HEARTBEAT_SUBJECT } from '../../schemas/signals/heartbeats.ts';

/** `lost`: the call takes effect, but its answer never arrives. `away`: the call has no effect. */
export type Fault = 'lost' | 'away';

interface Entry {
  key: string;
  value: unknown;
  revision: number;
}

type Callback = (error: null, message: { string: () => string; respond: () => void }) => void;

/** A queue for one reader, which waits while it is empty. */
class Channel<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  #wake: (() => void) | null = null;
  #closed = false;

  push(item: T): void {
    this.#items.push(item);
    this.#wake?.();
  }

  stop(): void {
    this.#closed = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    while (!this.#closed) {
      const item = this.#items.shift();
      if (item !== undefined) yield item;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

const shown = ({ key, value, revision }: Entry, delta: number) => ({
  key,
  revision,
  delta,
  operation: 'PUT',
  created: new Date(),
  json: () => structuredClone(value),
  string: () => JSON.stringify(value),
});

export class FaultyLog {
  /** Called for each operation. The operation fails with the returned fault. */
  fault: (method: 'create' | 'update' | 'get', key: string, value: unknown) => Fault | null = () => null;
  /** Whether watches receive changes. */
  telling = true;
  /** Heartbeats that were sent, with the time of each. */
  readonly beats: { worker_id: string; at: number }[] = [];
  readonly nc: NatsConnection;
  readonly kv: KV;
  readonly #entries = new Map<string, Entry>();
  readonly #watches = new Set<Channel<ReturnType<typeof shown>>>();
  readonly #statuses = new Set<Channel<{ type: string }>>();
  readonly #listeners = new Map<Callback, string>();
  #revision = 0;

  constructor() {
    this.nc = {
      isClosed: () => false,
      flush: () => Promise.resolve(),
      status: () => this.#open(this.#statuses),
      publish: (subject: string, text: string) => {
        if (subject === HEARTBEAT_SUBJECT)
          this.beats.push({ ...(JSON.parse(text) as { worker_id: string }), at: performance.now() });
        this.#tell(subject, text, () => undefined);
      },
      subscribe: (subject: string, { callback }: { callback: Callback }) => {
        this.#listeners.set(callback, subject);
        return { unsubscribe: () => this.#listeners.delete(callback) };
      },
      request: (subject: string) =>
        new Promise<void>((resolve, reject) => {
          if (![...this.#listeners.values()].includes(subject))
            reject(new RequestError('no responders', { cause: new NoRespondersError(subject) }));
          this.#tell(subject, '', resolve);
        }),
    } as unknown as NatsConnection;
    this.kv = {
      status: () => Promise.resolve({ values: this.#entries.size }),
      get: (key: string) =>
        this.#answer('get', key, null, () => {
          const entry = this.#entries.get(key);
          return entry === undefined ? null : shown(entry, 0);
        }),
      create: (key: string, bytes: Uint8Array) => this.#write('create', key, bytes, 0),
      update: (key: string, bytes: Uint8Array, revision: number) => this.#write('update', key, bytes, revision),
      watch: () => {
        const watch = this.#open(this.#watches);
        const entries = [...this.#entries.values()];
        entries.forEach((entry, index) => {
          watch.push(shown(entry, entries.length - 1 - index));
        });
        return Promise.resolve(watch);
      },
    } as unknown as KV;
  }

  value(key: string): unknown {
    return this.#entries.get(key)?.value;
  }

  /** Writes a value as another process would. */
  put(key: string, value: object): void {
    this.#revision += 1;
    const entry = { key, value, revision: this.#revision };
    this.#entries.set(key, entry);
    if (this.telling) for (const watch of this.#watches) watch.push(shown(entry, 0));
  }

  #tell(subject: string, text: string, respond: () => void): void {
    for (const [listener, listened] of this.#listeners)
      if (listened === subject) listener(null, { string: () => text, respond });
  }

  /** Emits the client's reconnect status. */
  reconnect(): void {
    for (const status of this.#statuses) status.push({ type: 'reconnect' });
  }

  /** Ends every watch from the server's side. */
  breakWatches(): void {
    for (const watch of this.#watches) watch.stop();
    this.#watches.clear();
  }

  #open<T>(open: Set<Channel<T>>): Channel<T> {
    const channel = new Channel<T>();
    open.add(channel);
    return channel;
  }

  #write(method: 'create' | 'update', key: string, bytes: Uint8Array, revision: number): Promise<number> {
    const value = JSON.parse(Buffer.from(bytes).toString()) as object;
    return this.#answer(method, key, value, () => {
      if ((this.#entries.get(key)?.revision ?? 0) !== revision) throw new Error('wrong last sequence');
      this.put(key, value);
      return this.#revision;
    });
  }

  async #answer<T>(method: 'create' | 'update' | 'get', key: string, value: unknown, act: () => T): Promise<T> {
    const fault = this.fault(method, key, value);
    await Promise.resolve();
    if (fault === 'away') throw new Error('timeout');
    const answer = act();
    if (fault === 'lost') throw new Error('timeout');
    return answer;
  }
}
