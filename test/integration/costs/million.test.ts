// A million calls at prices that binary numbers cannot represent: every sum that the service shows
// is exact to 1e-9 USD. Answers carry JSON numbers, and a total of about 50,000 USD leaves room for
// that many digits.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readSummary } from '../../../api/telemetry/costs/summary.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { readPeriodSums } from '../../../sql/stores/usage.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';

const CALLS = 1_000_000n;
const ORG = 'org_million';
const NOW = Date.parse('2026-03-10T12:00:00Z');
/**
 * The i-th call costs (i * STEP) % PRIME pico-USD: up to 0.1 USD, with digits to the last place.
 */
const PRIME = 99_999_999_977n;
const STEP = 61_803_398_875n;
const PER_USD = 10n ** 12n;

let store: TestStore;
let exact = 0n;

beforeAll(async () => {
  store = await openTestStore();
  for (let i = 0n; i < CALLS; i++) exact += (i * STEP) % PRIME;
  await store.client.execute({
    name: 'test_fill',
    sql: `INSERT INTO usage_events (org_id, hour, day, agent_id, model, events, cost_usd, partition, log_seq)
      SELECT '${ORG}', toDateTime('2026-03-10 00:00:00', 'UTC') - toIntervalHour(number % 200), toDate('2026-03-10') - toIntervalDay(intDiv(number % 200, 24)), '', concat('m', toString(number % 7)), 1,
        toDecimal128(toString(toUInt128(number) * ${STEP} % ${PRIME}), 12) / ${PER_USD}, 0, number + 1
      FROM numbers(${CALLS})`,
    timeoutMs: 60_000,
  });
});

afterAll(() => store.close());

test("the summary, its days and models, and a budget's sums agree over a million events", async () => {
  const { data } = await readSummary(
    { clickhouse: store.client, agentMetadata: () => null, now: () => NOW },
    ORG,
    { days: 30, group_by: 'model' },
    new AbortController().signal,
  );
  const off = (usd: number) => Math.abs(Number(usdToPico(usd) - exact)) / Number(PER_USD);
  const days = data.by_day.reduce((sum, { cost_usd }) => sum + usdToPico(cost_usd), 0n);
  const models = data.by_model.reduce((sum, { cost_usd }) => sum + usdToPico(Number(cost_usd)), 0n);
  expect(off(data.total_cost_usd)).toBeLessThanOrEqual(1e-9);
  expect(Math.abs(Number(days - exact)) / Number(PER_USD)).toBeLessThanOrEqual(1e-9);
  expect(Math.abs(Number(models - exact)) / Number(PER_USD)).toBeLessThanOrEqual(1e-9);
  const until = NOW + 3_600_000;
  const sums = await readPeriodSums(store.client, {
    org_id: ORG,
    from: Date.parse('2026-03-01T00:00:00Z'),
    until,
    agents: [],
  });
  expect(sums.reduce((sum, { cost_usd }) => sum + usdToPico(cost_usd), 0n)).toBe(exact);
});
