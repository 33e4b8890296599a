// Runs the job `monitors` once in its own process and kills that process with SIGKILL at its first
// notice, before or after the notice is sent.
import { createLogger } from '../../ops/platform/logger.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { openLog } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import { createMonitors } from '../../pipeline/monitors/run.ts';
import { createSender } from '../../pipeline/monitors/send.ts';
import { createClickHouse } from '../../sql/client/client.ts';

const { TEST_NATS_URL = '', TEST_CLICKHOUSE_URL = '', TEST_PLACE = '' } = process.env;
const onProblem = (): void => undefined;
const nc = await connectNats({ url: TEST_NATS_URL, name: 'monitor-worker', waitMs: 5000 });
const log = await openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 * 1024 });
const send = createSender(log, () => undefined);
const run = createMonitors({
  clickhouse: createClickHouse({ url: TEST_CLICKHOUSE_URL }),
  open: async () => ({
    monitors: await watch(log, 'monitors', onProblem),
    states: await watch(log, 'monitor_states', onProblem),
  }),
  send: async (monitor, notice) => {
    if (TEST_PLACE === 'after') await send(monitor, notice);
    process.kill(process.pid, 'SIGKILL');
    // The signal takes effect while this waits.
    await new Promise(() => undefined);
  },
});
await run({ now: Date.now(), signal: new AbortController().signal, log: createLogger('monitor-worker', 'silent') });
// A run without a notice ends here, and the test sees that nothing was killed.
process.exit(0);
