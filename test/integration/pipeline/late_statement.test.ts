// A landing whose answer is lost, and whose statement reaches the store only after the worker has
// looked up which rows landed.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { emptyUnit, Lander, type LandingUnit } from '../../../pipeline/landing/lander.ts';
import { type LandingRow, rowKey, traceRowKey } from '../../../pipeline/landing/landing_row.ts';
import { Fences } from '../../../pipeline/landing/fences.ts';
import { ClickHouseLandingStore } from '../../../pipeline/landing/landing_store.ts';
import { usageOf } from '../../../pipeline/domain/budgets/usage.ts';
import type { WireRow } from '../../../sql/stores/landing_tables.ts';
import { spanCells, textCells, signedTrace, traceCells, usageCells } from '../../../pipeline/landing/row_encoders.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';
import { type HoldingProxy, startHoldingProxy } from '../../support/holding_proxy.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';

const ROWS = 5;

let store: TestStore;
let proxy: HoldingProxy;
let client: ClickHouse;
let fences: Fences;
let landing: ClickHouseLandingStore;
let lander: Lander;
let next = 0;

beforeAll(async () => {
  // The store's fence says that partition 0 is in epoch 1.
  store = await openTestStore();
});
afterAll(() => store.close());
beforeEach(async () => {
  proxy = await startHoldingProxy(store.database.url);
  client = createClickHouse({ url: proxy.url });
  fences = new Fences(client, 'w1');
  landing = new ClickHouseLandingStore(client, fences);
  lander = new Lander({
    store: landing,
    workerId: `w${next}`,
    logger: createLogger('test', 'silent'),
    owned: () => [[0, 1]],
    onFenced: (partition) => {
      throw new Error(`partition ${partition} is said to be another's`);
    },
    observe: () => undefined,
  });
});
afterEach(async () => {
  await client.close();
  await proxy.close();
});

/** Returns rows for every table, all of one new trace. */
function aUnit(): { trace_id: string; unit: LandingUnit } {
  const trace_id = `late-${next}`;
  const spans = Array.from({ length: ROWS }, () => aSpan({ trace_id }));
  const unit = emptyUnit();
  const put = (rows: LandingRow[], wire: WireRow, log_seq: number, key: string): void =>
    void rows.push({ wire, partition: 0, epoch: 1, log_seq, key, event: null });
  for (const span of spans) {
    next += 1;
    const place = { partition: 0, log_seq: next, log_index: 0 };
    put(unit.spans, spanCells(span, place, 0, true), next, rowKey(next, 0, 0));
    put(unit.span_texts_recent, textCells(span, place, 0, 30) ?? [], next, rowKey(next, 0, 0));
    const usage = usageOf({ org_id: span.org_id, received_at: span.received_at, spans: [span] });
    put(unit.usage_events, usageCells(usage, 0, next), next, String(next));
  }
  const [trace] = tracesOf(spans);
  if (trace === undefined) throw new Error('spans make a trace');
  put(unit.traces, signedTrace(traceCells(trace, 0, next), 1), next, traceRowKey(trace.org_id, trace_id, next));
  return { trace_id, unit };
}

const count = async (table: string, from: number): Promise<number> => {
  const [row] = await store.client.rows<{ n: string }>({
    name: 'test',
    sql: `SELECT toString(count()) AS n FROM ${table} WHERE partition = 0 AND log_seq > {from:UInt64}`,
    params: { from },
    timeoutMs: 10_000,
  });
  return Number(row?.n);
};

describe.each(['spans', 'span_texts_recent', 'usage_events', 'traces'] as const)(
  'a statement of %s that comes late',
  (table) => {
    it('a late statement of %s writes nothing once its rows have landed by another', async () => {
      const before = next;
      const { unit } = aUnit();
      proxy.hold(`INSERT INTO ${table} `);
      expect(await lander.land(unit)).toEqual([]);
      expect(await count(table, before)).toBe(unit[table].length);
      expect((await proxy.deliver()).status).toBe(500);
      expect(await count(table, before)).toBe(unit[table].length);
    });

    it('a late statement of %s lands its rows when it arrives before it was given up', async () => {
      const before = next;
      const { unit } = aUnit();
      proxy.hold(`INSERT INTO ${table} `);
      const end = landing.end.bind(landing);
      let delivered = 0;
      landing.end = async (queryId) => {
        delivered += (await proxy.deliver()).written_rows;
        await end(queryId);
      };
      expect(await lander.land(unit)).toEqual([]);
      expect(delivered).toBeGreaterThanOrEqual(unit[table].length);
      expect(await count(table, before)).toBe(unit[table].length);
    });
  },
);

it('a statement that was given up blocks no other statement, and no other owner counts on it', async () => {
  const before = next;
  await landing.end('land-w0-spans-1');
  expect(await lander.land(aUnit().unit)).toEqual([]);
  expect(await count('spans', before)).toBe(ROWS);
  expect(await fences.newestEpoch()).toBe(1);
});
