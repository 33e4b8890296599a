// A usage account kept by landing reports and by reads of the store. A read makes up for a lost
// report, and for a landing whose worker died before it reported it; no reservation is released
// before that read.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { reportLanded } from '../../../ops/exchange/landing_reports.ts';
import type { LandingReport } from '../../../schemas/signals/landing_reports.ts';
import { UsageFollower } from '../../../ops/exchange/usage_follower.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { eventually } from '../../support/wait.ts';

const HOUR = 3_600_000;
const NOW = Date.UTC(2026, 5, 10, 12);
const JUNE = { start: Date.UTC(2026, 5), end: Date.UTC(2026, 6) };
const ORG = 'org_followed';
const EARLY = 'org_read_early';
const LOG_BASE = 1000;
/** Longer than a test may take, milliseconds. */
const FOREVER_MS = 3_600_000;

let store: TestStore;
let nats: TestNats;

beforeAll(async () => {
  [store, nats] = await Promise.all([openTestStore(), startTestNats()]);
}, 60_000);

afterAll(async () => {
  await nats.remove();
  await store.close();
});

/** Writes the rows of a landing. */
const land = (log_seq: number, tokens: number, agent_id = '', hour = NOW, org_id = ORG): Promise<string> =>
  store.database.run(
    `INSERT INTO usage_events (org_id, hour, agent_id, events, input_tokens, output_tokens, storage_bytes, sandbox_seconds, cost_usd, partition, log_seq)
    VALUES ('${org_id}', toDateTime(${hour / 1000}), '${agent_id}', 1, ${tokens}, 0, 7, 0.5, 0.25, 0, ${log_seq})`,
  );
const reported = (after: number, log_seq: number, tokens: number, epoch = 1): LandingReport => ({
  partition: 0,
  epoch,
  landed_through: log_seq,
  read_through: log_seq,
  behind: false,
  after,
  log_seq,
  rows: [
    {
      org_id: ORG,
      agent_id: '',
      key_id: '',
      hour: NOW - (NOW % HOUR),
      tokens,
      storage_bytes: 7,
      sandbox_micros: 500_000,
      cost_pico_usd: 250_000_000_000n,
    },
  ],
});

test('a read of the store that finds use before its landing is reported counts it once', async () => {
  const [api, worker] = [
    await connectNats({ url: nats.url, name: 'api', waitMs: 3000 }),
    await connectNats({ url: nats.url, name: 'worker', waitMs: 3000 }),
  ];
  const ledger = new UsageLedger();
  let reads = 0;
  const follower = new UsageFollower({
    nc: api,
    clickhouse: store.client,
    ledger,
    toPico: usdToPico,
    now: () => NOW,
    logBase: () => Promise.resolve(LOG_BASE),
    periodOf: () => JUNE,
    onMoved: () => reads++,
    onProblem: (problem, cause) => {
      throw new Error(problem, { cause });
    },
  });
  follower.follow(EARLY, []);
  await eventually(() => reads >= 2, { what: 'both reads of a new account' });
  const hour = NOW - (NOW % HOUR);
  const use = {
    tokens: 10,
    storage_bytes: 7,
    sandbox_micros: 500_000,
    cost_pico_usd: 250_000_000_000n,
    agent_id: '',
    partition: 0,
    hour,
  };
  ledger.reserve(EARLY, [use]).confirm(new Map([[0, 7]]));
  ledger.reserve(EARLY, [{ ...use, tokens: 5 }]).confirm(new Map([[0, 8]]));
  await land(LOG_BASE + 7, 10, '', NOW, EARLY);
  const before = reads;
  follower.rereadAll();
  await eventually(() => reads > before, { what: 'a read after the first step of the landing' });
  expect(ledger.used(EARLY).tokens).toBe(15);
  reportLanded(worker, [
    { ...reported(0, LOG_BASE + 7, 10), landed_through: 7, rows: [{ ...use, key_id: '', org_id: EARLY }] },
  ]);
  await eventually(() => reads > before + 1, { what: 'the read that the first word of a partition causes' });
  expect(ledger.used(EARLY).tokens).toBe(15);
  follower.close();
  await api.close();
  await worker.close();
});

test('a lost report, and a worker that died before it reported, are found by the next report and read from the store', async () => {
  const [api, worker] = [
    await connectNats({ url: nats.url, name: 'api', waitMs: 3000 }),
    await connectNats({ url: nats.url, name: 'worker', waitMs: 3000 }),
  ];
  await land(1, 100, 'a');
  await land(2, 50, 'b', JUNE.start - HOUR);
  const ledger = new UsageLedger();
  let reads = 0;
  const follower = new UsageFollower({
    nc: api,
    clickhouse: store.client,
    ledger,
    toPico: usdToPico,
    now: () => NOW,
    logBase: () => Promise.resolve(0),
    periodOf: () => JUNE,
    onMoved: () => reads++,
    onProblem: (problem, cause) => {
      throw new Error(problem, { cause });
    },
  });
  follower.follow(ORG, ['a']);
  await eventually(() => ledger.isSettled(ORG), { what: 'a first read' });
  // The follower reads each account a second time shortly after it was opened.
  await eventually(() => reads >= 2, { what: 'a second read' });
  expect(ledger.used(ORG)).toEqual({
    tokens: 100,
    storage_bytes: 7,
    sandbox_micros: 500_000,
    cost_pico_usd: 250_000_000_000n,
  });
  expect(ledger.agentUsed(ORG, 'a').tokens).toBe(100);

  // The first report of a partition causes a read, because the follower cannot know what landed
  // before it. The next report is counted without a read.
  await land(3, 10);
  reportLanded(worker, [reported(0, 3, 10)]);
  await eventually(() => ledger.used(ORG).tokens === 110, { what: 'the first word' });
  await eventually(() => reads >= 4, { what: 'the read that it caused' });
  const before = reads;
  await land(4, 5);
  reportLanded(worker, [reported(3, 4, 5)]);
  await eventually(() => ledger.used(ORG).tokens === 115, { what: 'the second word' });
  expect(reads).toBe(before + 1);

  // Reserved and landed, but its report is lost: the use counts at every moment.
  const hour = NOW - (NOW % HOUR);
  ledger
    .reserve(ORG, [
      { tokens: 20, storage_bytes: 7, sandbox_micros: 0, cost_pico_usd: 0n, agent_id: '', partition: 0, hour },
    ])
    .confirm(new Map([[0, 5]]));
  const seen = new Set<number>();
  const look = setInterval(() => seen.add(ledger.used(ORG).tokens), 0);
  await land(5, 20);
  reportLanded(worker, [{ ...reported(5, 0, 0), landed_through: 5, rows: [] }]);
  await eventually(() => ledger.used(ORG).storage_bytes === 28, { what: 'the lost one read' });

  // Landed by a worker that died; the next owner reports only the position up to which the
  // partition has landed.
  await land(6, 1000);
  reportLanded(worker, [{ ...reported(0, 0, 0, 2), landed_through: 6, rows: [] }]);
  await eventually(() => ledger.used(ORG).tokens === 1135, { what: "the dead worker's landing read" });
  clearInterval(look);
  // Every sample falls before or after the read: no reservation is released before its landed use
  // is counted.
  expect([...seen].filter((tokens) => tokens !== 135 && tokens !== 1135)).toEqual([]);
  follower.close();
  await api.close();
  await worker.close();
});

test('a wait for a read ends when the read fails, and a later wait with the read that succeeds', async () => {
  const api = await connectNats({ url: nats.url, name: 'api', waitMs: 3000 });
  const ledger = new UsageLedger();
  const problems: string[] = [];
  let isAway = true;
  const clickhouse: Pick<ClickHouse, 'rows'> = {
    rows: (read) => (isAway ? Promise.reject(new Error('the store is away')) : store.client.rows(read)),
  };
  const follower = new UsageFollower({
    nc: api,
    clickhouse: clickhouse as ClickHouse,
    ledger,
    toPico: usdToPico,
    now: () => NOW,
    logBase: () => Promise.resolve(LOG_BASE),
    periodOf: () => JUNE,
    onMoved: () => undefined,
    onProblem: (problem) => problems.push(problem),
  });
  const org = 'org_waited_for';
  await land(9, 70, '', NOW, org);
  follower.follow(org, []);
  await follower.whenRead(org, FOREVER_MS);
  expect([ledger.isSettled(org), problems]).toEqual([
    false,
    ['the usage of organizations cannot be read; their accounts stand still'],
  ]);
  isAway = false;
  await follower.whenRead(org, FOREVER_MS);
  expect(ledger.used(org).tokens).toBe(70);
  follower.close();
  await api.close();
});
