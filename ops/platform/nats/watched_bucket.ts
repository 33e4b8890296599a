// A KV bucket held in memory: every key is loaded when the bucket is opened and kept current by a
// watch, so reads never leave the process. Writes are compare-and-swap on the revision and visible
// in this process at once. After a lost connection the whole bucket is loaded again, so no change
// made meanwhile, including a deletion, is missed.
import { isDeepStrictEqual } from 'node:util';
import type { KV, KvEntry } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import type { ReportProblem } from '../report_problem.ts';
import { isLostWrite, waitAfterLostWrite } from './conflict.ts';

const RETRY_MS = 250;
/**
 * Maximum length of a key. The key is part of a subject, and nats-server ends a connection that
 * sends a protocol line of more than 4,096 bytes.
 */
export const KEY_CHARS_MAX = 1024;
/** Maximum number of tries of a change against other writers of the same key. */
const CHANGE_TRIES_MAX = 20;

/**
 * A write lost against another write to the same key: the caller reads the key again and decides on
 * its new value.
 */
export class RevisionConflict extends Error {}

export interface BucketEntry<T> {
  value: T;
  revision: number;
  /**
   * performance.now() of the last change, as far as this process knows. For an entry that was
   * loaded from the bucket it is the time at which the entry was written.
   */
  moved_at: number;
}

type Listener<T> = (key: string, entry: BucketEntry<T> | null) => void;

export interface WatchedBucketOptions<T> {
  /** Name of the bucket, for messages. */
  name: string;
  /**
   * Turns the text of a value into its type. A value for which it throws is reported and left out;
   * other values are not affected.
   */
  parse: (text: string) => T;
  /** Reports values that parse refused, and watches that broke and are opened again. */
  onProblem: ReportProblem;
}

export class WatchedBucket<T> {
  readonly #nc: NatsConnection;
  readonly #kv: KV;
  readonly #options: WatchedBucketOptions<T>;
  readonly #listeners = new Set<Listener<T>>();
  #held = new Map<string, BucketEntry<T>>();
  /**
   * What the load under way has read; it replaces #held once the load is complete. Null marks a
   * deleted key.
   */
  #loading: Map<string, BucketEntry<T> | null> | null = null;
  /**
   * Revisions of this process's own deletions that the watch has not delivered yet, so that an
   * older value cannot come back.
   */
  readonly #deleted = new Map<string, number>();
  #generation = 0;
  #stopWatch: (() => void) | undefined;
  #connected = true;
  #closed = false;

  private constructor(nc: NatsConnection, kv: KV, options: WatchedBucketOptions<T>) {
    this.#nc = nc;
    this.#kv = kv;
    this.#options = options;
  }

  /** Opens the watch. Resolves once every present key is loaded. */
  static async open<T>(nc: NatsConnection, kv: KV, options: WatchedBucketOptions<T>): Promise<WatchedBucket<T>> {
    const bucket = new WatchedBucket<T>(nc, kv, options);
    await bucket.#load();
    void bucket.#followConnection();
    return bucket;
  }

  get size(): number {
    return this.#held.size;
  }

  get(key: string): T | undefined {
    return this.#held.get(key)?.value;
  }

  /**
   * Returns true when the bucket has ever held this key: it holds a value or the delete marker of
   * one.
   */
  async hasEverHeld(key: string): Promise<boolean> {
    return (await this.#kv.get(key)) !== null;
  }

  /** Returns the value with its revision, for a compare-and-swap write. */
  held(key: string): BucketEntry<T> | undefined {
    return this.#held.get(key);
  }

  entries(): IterableIterator<[string, BucketEntry<T>]> {
    return this.#held.entries();
  }

  *values(): IterableIterator<T> {
    for (const { value } of this.#held.values()) yield value;
  }

  /**
   * Calls back on every change once it is visible here; null means that the key was deleted.
   * @returns a function that ends the subscription
   */
  onChange(listener: Listener<T>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Writes a key that must not exist. @throws RevisionConflict when it exists */
  async create(key: string, value: T): Promise<void> {
    this.#checkKey(key);
    this.#checkConnected();
    this.#apply(key, value, await conflictAware(this.#kv.create(key, JSON.stringify(value))));
  }

  /**
   * Writes a key that the bucket has never held, so that a deleted key stays deleted. @throws
   * RevisionConflict when it has held the key
   */
  async createOnce(key: string, value: T): Promise<void> {
    this.#checkKey(key);
    this.#checkConnected();
    // Revision 0 also loses against a delete marker, which create() of the client would overwrite.
    this.#apply(key, value, await conflictAware(this.#kv.put(key, JSON.stringify(value), { previousSeq: 0 })));
  }

  /** Replaces the revision that was read. @throws RevisionConflict when another write came first */
  async update(key: string, value: T, revision: number): Promise<void> {
    this.#checkKey(key);
    this.#checkConnected();
    this.#apply(key, value, await conflictAware(this.#kv.update(key, JSON.stringify(value), revision)));
  }

  /**
   * Applies a change to the newest value, and again when another write came first. `apply` gets
   * undefined where there is no value. What it throws ends the change. Null, or a value that equals
   * the present one, writes nothing.
   * @returns the value after the change: the written one, or the present one that was left
   * @throws RevisionConflict when other writers were faster in every try
   */
  async change(key: string, apply: (value: T | undefined) => T | null): Promise<T | undefined> {
    for (let tries = 1; ; tries++) {
      const held = this.#held.get(key);
      const changed = apply(held?.value);
      if (changed === null || (held !== undefined && isDeepStrictEqual(changed, held.value))) return held?.value;
      try {
        await (held === undefined ? this.create(key, changed) : this.update(key, changed, held.revision));
        return changed;
      } catch (error) {
        if (!(error instanceof RevisionConflict) || tries >= CHANGE_TRIES_MAX) throw error;
        await waitAfterLostWrite(tries);
        await this.#readNow(key);
      }
    }
  }

  /**
   * Reads the winning value from the bucket itself: in a busy process the watch may deliver it too
   * late for the next try.
   */
  async #readNow(key: string): Promise<void> {
    const entry = await this.#kv.get(key);
    if (entry === null) return;
    if (entry.operation === 'PUT') {
      this.#take(entry);
      return;
    }
    // Older values that the watch has not delivered yet must not come back.
    this.#deleted.set(key, entry.revision);
    this.#remove(key, entry.revision);
  }

  /**
   * Deletes a key at the revision that was read. @throws RevisionConflict when another write came
   * first
   */
  async delete(key: string, revision: number): Promise<void> {
    this.#checkKey(key);
    this.#checkConnected();
    await conflictAware(this.#kv.delete(key, { previousSeq: revision }));
    this.#deleted.set(key, revision);
    this.#remove(key, revision);
  }

  /** Stops watching. The values in memory stay readable. */
  close(): void {
    this.#closed = true;
    this.#stopWatch?.();
  }

  /**
   * Loads the whole bucket again and keeps watching. The values in memory stay as they are until
   * the load is complete.
   */
  async #load(): Promise<void> {
    const generation = ++this.#generation;
    this.#stopWatch?.();
    const loading = new Map<string, BucketEntry<T> | null>();
    this.#loading = loading;
    const empty = (await this.#kv.status()).values === 0;
    const watch = await this.#kv.watch();
    if (generation !== this.#generation || this.#closed) {
      watch.stop();
      return;
    }
    this.#stopWatch = () => {
      watch.stop();
    };
    const loaded = Promise.withResolvers<undefined>();
    const finish = () => {
      if (this.#loading === loading) this.#swap(loading);
      loaded.resolve(undefined);
    };
    if (empty) finish();
    const follow = async () => {
      for await (const entry of watch) {
        if (generation !== this.#generation) return;
        this.#take(entry);
        if (entry.delta === 0) finish();
      }
    };
    void follow()
      .catch((cause: unknown) => {
        this.#options.onProblem(`the watch on bucket ${this.#options.name} broke`, cause);
      })
      .finally(() => {
        loaded.resolve(undefined);
        if (generation === this.#generation && !this.#closed) void this.#reload();
      });
    await loaded.promise;
  }

  /**
   * Loads until a load succeeds, a newer load starts, or the bucket or the connection is closed.
   */
  async #reload(): Promise<void> {
    while (!this.#closed && !this.#nc.isClosed()) {
      const generation = this.#generation + 1;
      try {
        await this.#load();
        return;
      } catch (cause) {
        if (generation !== this.#generation) return;
        this.#options.onProblem(`bucket ${this.#options.name} could not be loaded again`, cause);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        if (generation !== this.#generation) return;
      }
    }
  }

  async #followConnection(): Promise<void> {
    for await (const status of this.#nc.status()) {
      if (this.#closed) return;
      if (status.type === 'disconnect' || status.type === 'staleConnection') this.#connected = false;
      if (status.type !== 'reconnect') continue;
      this.#connected = true;
      void this.#reload();
    }
    this.#connected = false;
  }

  #checkKey(key: string): void {
    if (key.length > KEY_CHARS_MAX)
      throw new Error(
        `bucket ${this.#options.name}: a key of ${key.length} characters; it must have at most ${KEY_CHARS_MAX}`,
      );
  }

  /** Rejects a write while the connection is down: the client would discard it silently. */
  #checkConnected(): void {
    if (!this.#connected) throw new Error(`bucket ${this.#options.name}: not connected`);
  }

  #take(entry: KvEntry): void {
    if (entry.operation !== 'PUT') {
      this.#deleted.delete(entry.key);
      this.#remove(entry.key, entry.revision);
      return;
    }
    let value: T;
    try {
      value = this.#options.parse(entry.string());
    } catch (cause) {
      this.#options.onProblem(
        `bucket ${this.#options.name}: a stored value could not be parsed and is left out`,
        cause,
      );
      return;
    }
    // An entry read during a load may be old; any other entry was written just now.
    const age = this.#loading === null ? 0 : Math.max(0, Date.now() - entry.created.getTime());
    this.#apply(entry.key, value, entry.revision, performance.now() - age);
  }

  #apply(key: string, value: T, revision: number, moved_at = performance.now()): void {
    const held: BucketEntry<T> = { value, revision, moved_at };
    if (this.#loading !== null && revision > (this.#loading.get(key)?.revision ?? 0)) this.#loading.set(key, held);
    if (revision <= Math.max(this.#held.get(key)?.revision ?? 0, this.#deleted.get(key) ?? 0)) return;
    this.#held.set(key, held);
    this.#tell(key, held);
  }

  #remove(key: string, revision: number): void {
    this.#loading?.set(key, null);
    const held = this.#held.get(key);
    if (held === undefined || revision < held.revision) return;
    this.#held.delete(key);
    this.#tell(key, null);
  }

  /**
   * Replaces the values in memory by those of a load, whatever their revisions are: the bucket is
   * authoritative.
   */
  #swap(loaded: Map<string, BucketEntry<T> | null>): void {
    const before = this.#held;
    this.#held = new Map();
    this.#loading = null;
    for (const [key, held] of loaded) if (held !== null) this.#held.set(key, held);
    for (const key of before.keys()) if (!this.#held.has(key)) this.#tell(key, null);
    for (const [key, held] of this.#held) if (before.get(key)?.revision !== held.revision) this.#tell(key, held);
  }

  #tell(key: string, held: BucketEntry<T> | null): void {
    for (const listener of this.#listeners) listener(key, held);
  }
}

async function conflictAware<R>(write: Promise<R>): Promise<R> {
  try {
    return await write;
  } catch (cause) {
    if (isLostWrite(cause)) throw new RevisionConflict('another write came first', { cause });
    throw cause;
  }
}
