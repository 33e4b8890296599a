// Applies the migrations of an API process in the background until they succeed, so that ingest
// does not wait for ClickHouse.
import { migrateShard } from '../../sql/client/migrate_store.ts';
import type { Shard } from '../../sql/client/shards.ts';
import type { ApiParts } from './parts.ts';

const RETRY_MS = 1000;

export interface Migrating {
  readonly done: boolean;
  /** Resolves once each shard was migrated, or its first try has failed. */
  readonly tried: Promise<void>;
  stop: () => void;
}

/**
 * Starts the migrations; reads answer 502 until those of a shard are done. @param onDone called once, when a shard has the
 * schema
 */
export function migrateInBackground(
  { store, env, logger }: Pick<ApiParts, 'store' | 'env' | 'logger'>,
  onDone: () => void,
): Migrating {
  const stopped = new AbortController();
  const state = {
    done: false,
    tried: Promise.resolve(),
    stop: () => {
      stopped.abort();
    },
  };
  const run = async (shard: Shard, onTried: () => void) => {
    for (let tries = 0; !stopped.signal.aborted; tries++) {
      try {
        await migrateShard(store, shard, env.SERVICE_CLICKHOUSE_CLUSTER);
        onTried();
        if (state.done) return;
        state.done = true;
        onDone();
        return;
      } catch (cause) {
        onTried();
        if (tries === 0)
          logger.warn(
            { err: cause, shard: shard.name },
            'ClickHouse is not ready: reads answer 502 until it is; ingest is accepted',
          );
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
      }
    }
  };
  const tries = store.shards.map((shard) => new Promise<void>((onTried) => void run(shard, onTried)));
  state.tried = Promise.all(tries).then(() => undefined);
  return state;
}
