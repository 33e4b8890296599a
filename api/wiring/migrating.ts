// Applies the migrations of an API process in the background until they succeed, so that ingest
// does not wait for ClickHouse.
import { migrate } from '../../sql/client/migrate.ts';
import type { ApiParts } from './parts.ts';

const RETRY_MS = 1000;

export interface Migrating {
  readonly done: boolean;
  stop: () => void;
}

/**
 * Starts the migrations; reads answer 502 until they are done. @param onDone called once, when the
 * schema exists
 */
export function migrateInBackground(
  { clickhouse, env, logger }: Pick<ApiParts, 'clickhouse' | 'env' | 'logger'>,
  onDone: () => void,
): Migrating {
  const stopped = new AbortController();
  const state = {
    done: false,
    stop: () => {
      stopped.abort();
    },
  };
  const run = async () => {
    for (let tries = 0; !stopped.signal.aborted; tries++) {
      try {
        await migrate(clickhouse, { cluster: env.SERVICE_CLICKHOUSE_CLUSTER });
        state.done = true;
        onDone();
        return;
      } catch (cause) {
        if (tries === 0)
          logger.warn({ err: cause }, 'ClickHouse is not ready: reads answer 502 until it is; ingest is accepted');
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
      }
    }
  };
  void run();
  return state;
}
