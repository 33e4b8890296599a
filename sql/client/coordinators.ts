// Reads of all shards. Any server of the cluster can coordinate a read: it asks every shard by way of its
// Distributed tables (distributed.ts). Guarantees: a read goes to the next server if one does not answer,
// and leaves out shards that are away only for callers that say so in their answers (partial.ts).
import { createClient, type ClickHouseClient, type ClickHouseSettings, ClickHouseError } from '@clickhouse/client';
import { isClosed, onceMoreIfStale } from './errors.ts';
import { isPartialAllowed, notePartial } from './partial.ts';

type Config = NonNullable<Parameters<typeof createClient>[0]>;

/** Asks a server, with settings in addition to those of every read. It may be called again while no answer has begun. */
type Ask<T> = (client: ClickHouseClient, settings: ClickHouseSettings) => Promise<T>;

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
/** A shard that hangs costs a read CONNECT_MS_MAX for each try. */
const CONNECT_TRIES = 2;

/**
 * 32 ATTEMPT_TO_READ_AFTER_EOF, 198 DNS_ERROR, 209 SOCKET_TIMEOUT, 210 NETWORK_ERROR, 279
 * ALL_CONNECTION_TRIES_FAILED: the coordinator could not ask another shard.
 */
const AWAY_CODES = new Set(['32', '198', '209', '210', '279']);

const SPREAD: ClickHouseSettings = {
  // A set or a table to join is made of all shards, and sent to each. The engine (26.7) does not do so for a union in
  // an IN: such a statement says GLOBAL IN itself.
  distributed_product_mode: 'global',
  connect_timeout_with_failover_ms: CONNECT_MS_MAX,
  handshake_timeout_ms: CONNECT_MS_MAX,
  connections_with_failover_max_tries: String(CONNECT_TRIES),
};

/** Returns true if the server could not ask another shard. */
export const isShardAway = (error: unknown): boolean => error instanceof ClickHouseError && AWAY_CODES.has(error.code);

/** Coordinators of reads, the preferred one first. */
export class Coordinators implements Reads {
  readonly #clients: readonly ClickHouseClient[];
  /** Until when each server counts as away, by performance.now(). */
  readonly #awayUntil: number[];
  /** Until when some shard counts as away. */
  #partialUntil = 0;

  /** @param config of the clients, with the database of the Distributed tables */
  constructor(urls: readonly string[], config: Config) {
    this.#clients = urls.map((url) => createClient({ ...config, ...serverOf(url) }));
    this.#awayUntil = urls.map(() => 0);
  }

  async send<T>(ask: Ask<T>): Promise<T> {
    const tried = new Set<number>();
    for (;;) {
      const at = this.#next(tried);
      const client = this.#clients[at];
      if (client === undefined) throw new Error('the store has no server');
      const isPartial = isPartialAllowed() && performance.now() < this.#partialUntil;
      try {
        const answer = await onceMoreIfStale(() =>
          ask(client, isPartial ? { ...SPREAD, skip_unavailable_shards: 1 } : SPREAD),
        );
        if (isPartial) notePartial();
        return answer;
      } catch (error) {
        if (isClosed(error)) {
          // The shard of that server is away, too.
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
    for (const client of this.#clients) if ((await client.ping()).success) return true;
    return false;
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

/** Returns the address and the credentials of a URL of the store. */
export function serverOf(url: string): { url: string; username: string; password: string } {
  const { protocol, host, username, password } = new URL(url);
  return {
    url: `${protocol}//${host}`,
    username: decodeURIComponent(username) || 'default',
    password: decodeURIComponent(password),
  };
}
