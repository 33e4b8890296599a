// Migrations of an API process: applied in the background until they work, so that ingest need not wait for ClickHouse.
import { migrate } from '../../sql/client/migrate.ts';
import type { ApiParts } from './parts.ts';

const RETRY_MS = 1000;

export interface Migrating {
  readonly done: boolean;
  stop: () => void;
}

/** Begins; reads answer 502 meanwhile. @param onDone called once, when the schema is there */
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
          logger.warn({ err: cause }, 'ClickHouse is not ready; reads answer 502 until it is, ingest goes on');
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
      }
    }
  };
  void run();
  return state;
}
