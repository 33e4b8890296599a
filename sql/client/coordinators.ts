// Reads of all shards. Any server of the cluster can coordinate a read: it asks every shard by way of its
// Distributed tables (distributed.ts). Guarantees: a read goes to the next server if one does not answer,
// and leaves out shards that are away only for callers that say so in their answers (partial.ts).
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type ClickHouseClient, type ClickHouseSettings, ClickHouseError } from '@clickhouse/client';
import { isClosed, onceMoreIfStale } from './errors.ts';
import { isPartialAllowed, notePartial } from './partial.ts';

type Config = NonNullable<Parameters<typeof createClient>[0]>;

/** Asks a server, with settings in addition to those of every read. It may be called again while no answer has begun. */
type Ask<T> = (client: ClickHouseClient, settings: ClickHouseSettings) => Promise<T>;

/** A server that could not be asked. */
class Unreachable extends Error {}

/** Sends reads to the store. */
export interface Reads {
  send<T>(ask: Ask<T>): Promise<T>;
  ping(): Promise<boolean>;
  close(): Promise<void>;
}

/** Returns the reads of a single server. */
export const readsOfOne = (client: ClickHouseClient): Reads => ({
  send: (ask) => onceMoreIfStale(() => ask(client, {})),
  ping: async () => (await client.ping()).success,
  close: () => Promise.resolve(),
});

/** How long reads leave a shard out, or begin elsewhere, before they try again, in milliseconds. */
const AWAY_MS = 2000;
/** Time after which a server that accepts no connection, or does not greet, counts as away. */
const CONNECT_MS_MAX = 1000;
/** Silence of a shard in the middle of an answer after which it counts as away. One at work reports its progress. */
const SILENCE_S_MAX = 10;
/** A shard that hangs costs a read CONNECT_MS_MAX for each try. */
const CONNECT_TRIES = 2;

/**
 * 32 ATTEMPT_TO_READ_AFTER_EOF, 198 DNS_ERROR, 209 SOCKET_TIMEOUT, 210 NETWORK_ERROR, 279
 * ALL_CONNECTION_TRIES_FAILED: the coordinator could not ask another shard.
 */
const AWAY_CODES = new Set(['32', '198', '209', '210', '279']);

/** 81 UNKNOWN_DATABASE: a server that no process has migrated yet. */
const NOT_READY_CODE = '81';
/** A server that has not begun to answer after this time is asked whether it is there. */
const ASKED_AFTER_MS = 3000;

const SPREAD: ClickHouseSettings = {
  // A set or a table to join is made of all shards, and sent to each. The engine (26.7) does not do so for a union in
  // an IN: such a statement says GLOBAL IN itself.
  distributed_product_mode: 'global',
  connect_timeout_with_failover_ms: CONNECT_MS_MAX,
  handshake_timeout_ms: CONNECT_MS_MAX,
  receive_timeout: SILENCE_S_MAX,
  connections_with_failover_max_tries: String(CONNECT_TRIES),
};

/** Returns true if the server could not ask another shard. */
export const isShardAway = (error: unknown): boolean => error instanceof ClickHouseError && AWAY_CODES.has(error.code);

/** True if another server should be asked. The shard of one that is unreachable is away, too. */
const isElsewhere = (error: unknown): boolean =>
  isClosed(error) ||
  error instanceof Unreachable ||
  (error instanceof ClickHouseError && error.code === NOT_READY_CODE);

/** Coordinators of reads. Each process begins with another one, so that they share the work. */
export class Coordinators implements Reads {
  readonly #clients: readonly ClickHouseClient[];
  /** Until when each server counts as away, by performance.now(). */
  readonly #awayUntil: number[];
  /** Until when some shard counts as away. */
  #partialUntil = 0;

  /**
   * @param config of the clients, with the database of the Distributed tables
   * @param first the server with which reads begin; any if absent
   */
  constructor(urls: readonly string[], config: Config, first = Math.floor(Math.random() * urls.length)) {
    const ordered = urls.map((_, index) => urls[(first + index) % urls.length] ?? '');
    this.#clients = ordered.map((url) => createClient({ ...config, ...serverOf(url) }));
    this.#awayUntil = urls.map(() => 0);
  }

  async send<T>(ask: Ask<T>): Promise<T> {
    const tried = new Set<number>();
    for (;;) {
      const at = this.#next(tried);
      const client = this.#clients[at];
      if (client === undefined) throw new Error('the store has no server');
      const isPartial = isPartialAllowed() && performance.now() < this.#partialUntil;
      const settings = isPartial ? { ...SPREAD, skip_unavailable_shards: 1 as const } : SPREAD;
      try {
        const answer = await onceMoreIfStale(() => whileThere(client, ask(client, settings)));
        if (isPartial) notePartial();
        return answer;
      } catch (error) {
        if (isElsewhere(error)) {
          this.#awayUntil[at] = performance.now() + AWAY_MS;
          tried.add(at);
          if (tried.size === this.#clients.length) throw error;
        } else if (!isShardAway(error) || isPartial) throw error;
        else {
          this.#partialUntil = performance.now() + AWAY_MS;
          if (!isPartialAllowed()) throw error;
        }
      }
    }
  }

  /** Returns true if any server answers. */
  async ping(): Promise<boolean> {
    const asked = this.#clients.map(async (client) => {
      if (!(await isThere(client))) throw new Unreachable('the server does not answer');
    });
    return Promise.any(asked).then(
      () => true,
      () => false,
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  /** Returns the first server that is not away and was not tried; if all are away, the first that was not tried. */
  #next(tried: ReadonlySet<number>): number {
    const left = this.#clients.map((_, index) => index).filter((index) => !tried.has(index));
    return left.find((index) => (this.#awayUntil[index] ?? 0) <= performance.now()) ?? left[0] ?? -1;
  }
}

/**
 * Returns the answer of a server that works for long, and gives up on one that is not there any more.
 * @throws Unreachable; what the answer throws
 */
async function whileThere<T>(client: ClickHouseClient, answer: Promise<T>): Promise<T> {
  const ended = new AbortController();
  const gone = untilGone(client, ended.signal);
  try {
    return await Promise.race([answer, gone]);
  } catch (error) {
    // The server may come back and answer, which nobody would read.
    if (error instanceof Unreachable) answer.then(discard, () => undefined);
    throw error;
  } finally {
    ended.abort();
  }
}

/**
 * Asks a server from time to time whether it is there.
 * @returns rejects with Unreachable when it is not; otherwise it never settles
 */
async function untilGone(client: ClickHouseClient, ended: AbortSignal): Promise<never> {
  do {
    await sleep(ASKED_AFTER_MS, undefined, { signal: ended, ref: false }).catch(() => undefined);
    if (ended.aborted) return new Promise(() => undefined);
  } while (await isThere(client));
  throw new Unreachable('the server does not answer');
}

const isThere = async (client: ClickHouseClient): Promise<boolean> =>
  (await client.ping({ select: false, abort_signal: AbortSignal.timeout(CONNECT_MS_MAX) })).success;

/** Closes the answer to a query or to a statement, which would otherwise keep its connection. */
function discard(answer: unknown): void {
  if (typeof answer !== 'object' || answer === null) return;
  if ('close' in answer && typeof answer.close === 'function') (answer as { close: () => void }).close();
  else if ('stream' in answer && answer.stream instanceof Readable) answer.stream.destroy();
}

/** Returns the address and the credentials of a URL of the store. */
export function serverOf(url: string): { url: string; username: string; password: string } {
  const { protocol, host, username, password } = new URL(url);
  return {
    url: `${protocol}//${host}`,
    username: decodeURIComponent(username) || 'default',
    password: decodeURIComponent(password),
  };
}
