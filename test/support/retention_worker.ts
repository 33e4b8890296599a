// Runs retention or a restore in its own process up to a given step and then stops there, for tests
// that kill it at that step. Its parent configures it through the environment and gets a message
// when the step is reached.
import { die } from '../../ops/platform/leave.ts';
import { createLogger } from '../../ops/platform/logger.ts';
import type { ObjectStore } from '../../ops/platform/object_store/object_store.ts';
import { openObjectStore } from '../../ops/platform/object_store/open.ts';
import { ColdStorage } from '../../pipeline/cold/cold_storage.ts';
import { createRestore } from '../../pipeline/cold/restore.ts';
import { MONTHLY } from '../../pipeline/domain/budgets/period.ts';
import { createRetention } from '../../pipeline/retention/retention.ts';
import { changedRetention, DEFAULT_RETENTION } from '../../schemas/records/retention.ts';
import { createClickHouse } from '../../sql/client/client.ts';
import { ColdTables } from '../../sql/stores/cold.ts';
import { RetentionStore } from '../../sql/stores/retention.ts';

const {
  TEST_CLICKHOUSE_URL = '',
  TEST_OBJECTS = '',
  TEST_TEMP = '',
  TEST_STEP = '',
  TEST_WORK = '',
  TEST_NOW = '0',
  TEST_DELETE_DAYS = '',
} = process.env;
process.on('disconnect', die);

const step = async (name: string): Promise<void> => {
  if (name !== TEST_STEP) return;
  process.send?.(name);
  await new Promise(() => undefined);
};
const objects = await openObjectStore({ url: TEST_OBJECTS });
/** Stops in the middle of an object. */
const slow: ObjectStore = {
  place: objects.place,
  put: (key, content, signal) =>
    objects.put(
      key,
      (async function* () {
        for await (const chunk of content) {
          yield chunk.subarray(0, 100);
          await step('uploading');
          yield chunk.subarray(100);
        }
      })(),
      signal,
    ),
  get: (key, signal, range) => objects.get(key, signal, range),
  stat: (key, signal) => objects.stat(key, signal),
  delete: (key, signal) => objects.delete(key, signal),
  list: (prefix, signal) => objects.list(prefix, signal),
  close: () => {
    objects.close();
  },
};
const clickhouse = createClickHouse({ url: TEST_CLICKHOUSE_URL });
const tables = new ColdTables(clickhouse);
const cold = new ColdStorage({ store: slow, tables, tempDir: TEST_TEMP, now: () => Date.now(), step });
const { signal } = new AbortController();
const log = createLogger('test', 'silent');
const now = Number(TEST_NOW);

if (TEST_WORK === 'restore') {
  const restore = createRestore({
    shards: [{ cold, tables }],
    retentionOf: () => DEFAULT_RETENTION,
    openJobs: () => new Set(),
    now: () => now,
  });
  const args = { since_day: null, until_day: null, trace_ids: null };
  await restore({ job_id: 'job_00000000000000ff', org_id: 'org_a', args, progress: () => undefined, signal, log });
} else {
  const store = new RetentionStore(clickhouse);
  const days = Number(TEST_DELETE_DAYS);
  const telemetry_events = { full_prompt_response_days: days, metadata_only_days: days, delete_after_days: days };
  const policies =
    days > 0
      ? [{ org_id: 'org_a', policy: changedRetention(DEFAULT_RETENTION, { telemetry_events }), budget: MONTHLY }]
      : [];
  await createRetention({
    store,
    tables,
    cold,
    policies: () => Promise.resolve(policies),
    tracesDeleted: () => Promise.resolve(),
    step,
  })({
    now,
    signal,
    log,
  });
}
process.send?.('done');
