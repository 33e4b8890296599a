// Partitions that move to another shard while events arrive: traces that began before go on, nothing lands
// twice, and a worker that is killed in between changes none of that.
import { afterAll, beforeAll, beforeEach, afterEach, expect, it } from 'vitest';
import { partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import { runStatement } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { logged, openTestLog, PARTITIONS, startWorker, type TestLog, type TestWorker } from '../../support/pipeline.ts';
import {
  createShardDatabase,
  type ShardDatabase,
  type ShardEngines,
  startShardEngines,
} from '../../support/shard_engines.ts';
import { eventually } from '../../support/wait.ts';

const TRACES = 40;
const LANDED_MS_MAX = 60_000;

let engines: ShardEngines;
let database: ShardDatabase;
let nats: TestNats;
let log: TestLog;
const workers: TestWorker[] = [];

beforeAll(async () => {
  engines = await startShardEngines(2);
});
afterAll(() => engines.remove());
beforeEach(async () => {
  database = await createShardDatabase(engines);
  nats = await startTestNats();
  log = await openTestLog(nats.url);
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map(stop));
  await log.close();
  await nats.remove();
  await database.drop();
});

const stop = async (worker: TestWorker): Promise<void> => {
  worker.kill('SIGKILL');
  await worker.exited;
};

/** Starts a worker for which the first shard has the partitions up to one (-1: none), and the second the others. */
async function start(firstShardTo: number): Promise<TestWorker> {
  const [first = '', second = ''] = database.urls;
  const own = firstShardTo < 0 ? '' : `:0-${firstShardTo}`;
  const ranges = firstShardTo < PARTITIONS - 1 ? `:${firstShardTo + 1}-${PARTITIONS - 1}` : '';
  const worker = startWorker({
    natsUrl: nats.url,
    more: {
      SERVICE_CLICKHOUSE_SHARDS: `s1${own}=${first} s2${ranges}=${second}`,
      SERVICE_TRACE_GRACE_MS: '50',
      SERVICE_TRACE_IDLE_MS: '300',
    },
  });
  workers.push(worker);
  await worker.ready;
  return worker;
}

const traceIds = Array.from({ length: TRACES }, (_, at) => `trace-${at}`);

/** Publishes an event of each trace. */
function send(round: number, attributes: Record<string, unknown> = {}): Promise<void> {
  const events = traceIds.map((trace_id) =>
    logged('custom', {
      name: `round ${round}`,
      outcome: 'success',
      duration_ms: 1,
      trace_id,
      attributes: {
        span_id: `${trace_id}-${round}`,
        input_tokens: 1,
        span_kind: 'llm',
        model: 'gpt-4o',
        ...attributes,
      },
    }),
  );
  return log.publish(events, ({ org_id, trace_id }) => partitionOf(org_id, trace_id, PARTITIONS));
}

const all = (sql: string): Promise<string> =>
  runStatement(database.allUrls[0] ?? '', `${sql} FORMAT TSV`).then((text) => text.trim());
const each = (sql: string): Promise<string[]> =>
  Promise.all(database.urls.map(async (url) => (await runStatement(url, `${sql} FORMAT TSV`)).trim()));
const landed = (rounds: number): Promise<unknown> =>
  eventually(async () => (await all('SELECT count() FROM spans')) === String(rounds * TRACES), {
    withinMs: LANDED_MS_MAX,
    what: `rows of ${rounds} rounds`,
  });
/** Traces without exactly one live row, and those whose row does not have all of their spans. */
async function broken(rounds: number): Promise<string> {
  return all(`SELECT
    (SELECT countIf(live != 1) FROM (SELECT trace_id, sum(sign) AS live FROM traces GROUP BY trace_id)),
    (SELECT count() FROM traces FINAL WHERE spans != ${rounds} OR input_tokens != ${rounds}),
    (SELECT count() FROM traces FINAL),
    (SELECT count() - uniqExact(trace_id, span_id) FROM spans),
    (SELECT sum(events) FROM usage_events)`);
}
const whole = (rounds: number): string => `0\t0\t${TRACES}\t0\t${rounds * TRACES}`;

/** Traces land after their spans, so a read between the two finds some without their newest ones. */
async function becomesWhole(rounds: number): Promise<void> {
  let found = '';
  await eventually(async () => (found = await broken(rounds)) === whole(rounds), {
    withinMs: LANDED_MS_MAX,
    what: 'whole traces',
  }).catch((error: unknown) => {
    throw new Error(`${found} is not ${whole(rounds)}`, { cause: error });
  });
}

it('traces go on in the new shard, and their spans are in both', async () => {
  const before = await start(PARTITIONS - 1);
  await send(1);
  await landed(1);
  expect(await each('SELECT count() FROM spans')).toEqual([String(TRACES), '0']);
  await stop(before);
  await start(1);
  await send(2);
  await landed(2);
  await becomesWhole(2);
  const [first, second] = (await each('SELECT count() FROM spans')).map(Number);
  expect([(first ?? 0) > TRACES, (second ?? 0) > 0]).toEqual([true, true]);
  // The row of a trace is in the shard of its partition.
  expect(await each('SELECT uniqExact(partition) FROM traces FINAL WHERE partition <= 1')).toEqual(['2', '0']);
  expect(await each('SELECT uniqExact(partition) FROM traces FINAL WHERE partition > 1')).toEqual(['0', '2']);
});

it('an event that landed in the former shard is known in the new one', async () => {
  const before = await start(PARTITIONS - 1);
  await send(1);
  await landed(1);
  await stop(before);
  await start(0);
  await send(1);
  await send(2);
  await landed(2);
  await becomesWhole(2);
});

it('the row of a trace counts once after a crash between its landing in the new shard and its end in the former one', async () => {
  const before = await start(PARTITIONS - 1);
  await send(1);
  await landed(1);
  await becomesWhole(1);
  await stop(before);
  const [former = '', now = ''] = database.urls;
  const moved = await runStatement(former, 'SELECT * FROM traces FINAL WHERE partition > 0 FORMAT JSONEachRow');
  await runStatement(now, `INSERT INTO traces FORMAT JSONEachRow ${moved}`);
  expect(await broken(1)).not.toBe(whole(1));
  await start(0);
  await send(2);
  await landed(2);
  await becomesWhole(2);
});

it('a partition that comes back finds its traces where they are newest', async () => {
  const before = await start(PARTITIONS - 1);
  await send(1);
  await landed(1);
  await stop(before);
  const moved = await start(0);
  await send(2);
  await landed(2);
  await becomesWhole(2);
  await stop(moved);
  await start(PARTITIONS - 1);
  await send(3);
  await landed(3);
  await becomesWhole(3);
  expect(await each('SELECT count() FROM traces FINAL')).toEqual([String(TRACES), '0']);
});

it('the gateway counts a call in place of a record that landed in the former shard', async () => {
  const before = await start(PARTITIONS - 1);
  await send(1, { 'gen_ai.response.id': 'msg_1' });
  await landed(1);
  await stop(before);
  await start(-1);
  await send(2, { 'gen_ai.response.id': 'msg_1', gateway: true });
  await landed(2);
  const replaced = (sql: string) => all(`SELECT ${sql} FROM spans WHERE log_seq > 0`);
  await eventually(async () => (await replaced('sum(input_tokens)')) === String(TRACES), {
    withinMs: LANDED_MS_MAX,
    what: 'rows that count once',
  });
  expect(await each(`SELECT countIf(JSONHas(attributes, 'duplicate_of')) FROM spans`)).toEqual([String(TRACES), '0']);
  expect(await all('SELECT sum(input_tokens), count() FROM traces FINAL')).toBe(`${TRACES}\t${TRACES}`);
});

it('partitions move while two workers run, of which one is killed and another never restarts', async () => {
  const [first] = [await start(PARTITIONS - 1), await start(PARTITIONS - 1)];
  let rounds = 0;
  const load = async (count: number): Promise<void> => {
    for (let sent = 0; sent < count; sent++) await send(++rounds);
  };
  await load(3);
  const loading = load(10);
  await stop(first);
  await start(1);
  await loading;
  const third = await start(1);
  await load(3);
  await stop(third);
  await load(2);
  await landed(rounds);
  await becomesWhole(rounds);
}, 180_000);
