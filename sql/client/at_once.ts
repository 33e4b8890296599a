// Lets @clickhouse/client send a request at once. Before each request the client waits for a timer of 0 ms, which
// Node rounds up to 1 ms, so that idle connections can be closed first (clickhouse-js issue 294). A page that reads in
// three steps waited 4 ms for nothing. `eagerly_destroy_stale_sockets`, which the client's options here set, looks for
// such connections without waiting, and a read that meets a closing one is sent once more (errors.ts).
import { createRequire } from 'node:module';

/** The module whose `sleep` the client calls by this name. It is not part of the client's interface: package.json pins the version. */
const SLEEP = '@clickhouse/client/dist/common/utils/sleep.js';

/** Makes every request of the client start in the same turn of the event loop. */
export function sendAtOnce(): void {
  const module = createRequire(import.meta.url)(SLEEP) as { sleep: (ms: number) => Promise<void> };
  module.sleep = () => Promise.resolve();
}
