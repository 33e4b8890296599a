// Runs erasures in its own process up to a given step and then stops there, for tests that kill it
// at that step. Its parent configures it through the environment and gets a message when the step
// is reached.
import { die } from '../../ops/platform/leave.ts';
import { JobRecords } from '../../ops/exchange/job_records.ts';
import { createLogger } from '../../ops/platform/logger.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { openObjectStore } from '../../ops/platform/object_store/open.ts';
import { openSealer } from '../../ops/platform/sealing.ts';
import { openLog } from '../../ops/platform/nats/open_log.ts';
import { ColdStorage } from '../../pipeline/cold/cold_storage.ts';
import { JobLeases } from '../../pipeline/jobs/lease.ts';
import { LongJobRunner } from '../../pipeline/jobs/long_jobs.ts';
import { RETENTION } from '../../pipeline/retention/retention.ts';
import { openErasure } from '../../pipeline/wiring/erasure.ts';
import { createClickHouse } from '../../sql/client/client.ts';
import { ColdTables } from '../../sql/stores/cold.ts';

const {
  TEST_NATS_URL = '',
  /** One URL, or those of the shards a, b and so on, with spaces between them. */
  TEST_CLICKHOUSE_URL = '',
  TEST_OBJECTS = '',
  TEST_TEMP = '',
  TEST_STEP = '',
  TEST_WORKER = '',
  TEST_HURRY = '1',
} = process.env;
process.on('disconnect', die);

const step = async (name: string): Promise<void> => {
  if (name !== TEST_STEP) return;
  process.send?.(name);
  await new Promise(() => undefined);
};
const hurry = Number(TEST_HURRY);
const logger = createLogger('test', 'silent');
const onProblem = (): void => undefined;
const nc = await connectNats({ url: TEST_NATS_URL, name: TEST_WORKER, waitMs: 5000 });
const log = await openLog(nc, { replicas: 1, logBytesMax: 64 * 1024 * 1024 });
const leases = await JobLeases.open({ log, workerId: TEST_WORKER, onProblem });
await leases.ensure(RETENTION, new Date(0).toISOString());
leases.close();
const objects = await openObjectStore({ url: TEST_OBJECTS });
const urls = TEST_CLICKHOUSE_URL.split(' ');
const cold = urls.map((url, index) => {
  const clickhouse = createClickHouse({ url });
  const tables = new ColdTables(clickhouse);
  const shard = urls.length === 1 ? '' : String.fromCharCode('a'.charCodeAt(0) + index);
  return {
    clickhouse,
    cold: new ColdStorage({ store: objects, tables, shard, tempDir: TEST_TEMP, now: () => Date.now(), step }),
  };
});
const records = await JobRecords.open(log, onProblem);
const erasure = await openErasure({
  logger,
  log,
  workerId: TEST_WORKER,
  onProblem,
  logBase: 0,
  sync: () => Promise.resolve(),
  sealer: await openSealer(log, undefined),
  cold,
  partitions: 4,
  worker: {
    forgetTraces: () => Promise.resolve(true),
    forgetEvents: () => Promise.resolve(true),
    forgetOrg: () => Promise.resolve(true),
  },
  deletions: { isRunning: () => false },
  step,
  hurry,
});
new LongJobRunner({
  records,
  handlers: erasure.handlers(records),
  workerId: TEST_WORKER,
  log: logger,
  now: () => Date.now(),
  observe: () => undefined,
  hurry,
}).start();
