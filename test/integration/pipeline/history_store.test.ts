// A new owner reads the state of several partitions from the store at once, each from its own position on.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { usageOf } from '../../../pipeline/domain/budgets/usage.ts';
import { identityHalves } from '../../../pipeline/domain/traces/event_identity.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { ClickHouseHistoryStore } from '../../../pipeline/landing/history_store.ts';
import { spanCells, textCells, signedTrace, traceCells, usageCells } from '../../../pipeline/landing/row_encoders.ts';
import { traceHash } from '../../../pipeline/traces/trace_filter.ts';
import type { PartitionRecord } from '../../../schemas/records/partition.ts';
import {
  landingBody,
  landingStatement,
  SPAN_TEXTS,
  SPANS,
  type TableSpec,
  TRACES,
  USAGE_EVENTS,
  type WireRow,
} from '../../../sql/stores/landing_tables.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';

const BASE = 1000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW = Date.now();
const OPTIONS = { logBase: BASE, windowMs: HOUR_MS, tail: true };

/** Rows by partition and position in the log. Partition 2 is nobody's that is asked for. */
const ROWS: [partition: number, position: number, trace_id: string, received_at: number, sampled: boolean][] = [
  [0, 3, 'forgotten', NOW - 3 * HOUR_MS, true],
  [0, 5, 'before', NOW - 60_000, true],
  [0, 12, 'after', NOW, true],
  [1, 8, 'quiet', NOW - 10 * DAY_MS, true],
  [1, 20, 'thinned', NOW - 10 * DAY_MS + 60_000, false],
  [2, 30, 'other', NOW, true],
];

const record = (partition: number, checkpoint: number, completed_through: number): PartitionRecord => ({
  partition,
  owner: 'w1',
  epoch: 2,
  checkpoint,
  completed_through,
  at: '',
});
const RECORDS = [record(0, 10, 4), record(1, 15, 8)];

let store: TestStore;
const events = new Map<string, Span>();

beforeAll(async () => {
  store = await openTestStore();
  const land = async (spec: TableSpec, rows: readonly (WireRow | null)[]): Promise<void> => {
    await store.client.execute({
      name: 'land',
      sql: landingStatement(spec),
      body: landingBody(
        spec,
        rows.filter((row) => row !== null),
      ),
      timeoutMs: 20_000,
    });
  };
  const placed = ROWS.map(([partition, position, trace_id, received_at, sampled]) => {
    const span = aSpan({ trace_id, received_at, started_at: received_at - 2000, ended_at: received_at - 1000 });
    events.set(trace_id, span);
    return { span, sampled, place: { partition, log_seq: BASE + position, log_index: 0 } };
  });
  const wholes = placed.filter(({ sampled }) => sampled);
  await land(
    SPAN_TEXTS,
    wholes.map(({ span, place }) => textCells(span, place, 0, 30)),
  );
  await land(
    USAGE_EVENTS,
    placed.map(({ span, place }) =>
      usageCells(
        usageOf({ org_id: span.org_id, received_at: span.received_at, spans: [span] }),
        place.partition,
        place.log_seq,
      ),
    ),
  );
  await land(
    SPANS,
    placed.map(({ span, place, sampled }) => spanCells(span, place, 0, sampled)),
  );
  await land(
    TRACES,
    placed.flatMap(({ span, place }) =>
      tracesOf([span]).map((trace) => signedTrace(traceCells(trace, place.partition, place.log_seq), 1)),
    ),
  );
});
afterAll(() => store.close());

it('reads the rows above the checkpoint of each partition, and its open traces', async () => {
  const histories = await new ClickHouseHistoryStore(store.client).histories(RECORDS, OPTIONS);
  expect([...histories.keys()]).toEqual([0, 1]);
  const [zero, one] = [histories.get(0), histories.get(1)];
  expect([...(zero?.spans ?? [])]).toEqual([`${BASE + 12}:0:0`]);
  expect([...(zero?.texts ?? [])]).toEqual([`${BASE + 12}:0:0`]);
  expect(zero?.usage_through).toBe(BASE + 12);
  expect(zero?.traces.map(({ state, version }) => [state.trace_id, version])).toEqual([
    ['before', BASE + 5],
    ['after', BASE + 12],
  ]);
  expect([...(zero?.decided.values() ?? [])]).toEqual([{ log_seq: 0, log_index: 0 }]);
  expect([...(one?.spans ?? [])]).toEqual([`${BASE + 20}:0:0`]);
  expect([...(one?.texts ?? [])]).toEqual([]);
  expect(one?.usage_through).toBe(BASE + 20);
  expect(one?.traces.map(({ state }) => state.trace_id)).toEqual(['thinned']);
  expect([...(one?.decided.values() ?? [])]).toEqual([{ log_seq: Infinity, log_index: 0 }]);
});

it('knows nothing above a checkpoint after which nothing has landed', async () => {
  const ended = [record(0, 12, 12), record(1, 20, 20)];
  const histories = await new ClickHouseHistoryStore(store.client).histories(ended, OPTIONS);
  for (const { spans, texts, usage_through, traces, decided } of histories.values())
    expect([spans.size, texts.size, usage_through, traces.length, decided.size]).toEqual([0, 0, 0, 0, 0]);
});

it('recalls the traces of each partition, and the ids of its own window up to its checkpoint', async () => {
  const recalled = new Map([0, 1].map((partition) => [partition, { ids: [] as string[], traces: [] as number[] }]));
  const memories = new Map(
    [...recalled].map(([partition, { ids, traces }]) => [
      partition,
      {
        id: (high: number, low: number, receivedAt: number) => void ids.push(`${high} ${low} ${receivedAt}`),
        trace: (hash: number) => void traces.push(hash),
      },
    ]),
  );
  await new ClickHouseHistoryStore(store.client).recall(RECORDS, OPTIONS, memories);
  const idOf = (trace_id: string): string => {
    const span = events.get(trace_id) ?? aSpan();
    return `${identityHalves(span).join(' ')} ${Math.floor(span.received_at / 1000) * 1000}`;
  };
  const hashes = (...traces: string[]): number[] => traces.map((trace) => traceHash('org_a', trace)).toSorted();
  // The window of a partition ends with its own newest event, however old that is.
  expect(recalled.get(0)?.ids).toEqual([idOf('before')]);
  expect(recalled.get(1)?.ids).toEqual([idOf('quiet')]);
  expect(recalled.get(0)?.traces.toSorted()).toEqual(hashes('forgotten', 'before', 'after'));
  expect(recalled.get(1)?.traces.toSorted()).toEqual(hashes('quiet', 'thinned'));
});

it('names the open traces with the newest rows, at most as many as asked for', async () => {
  const history = new ClickHouseHistoryStore(store.client);
  const named = async (max: number) =>
    (await history.newestTraces(RECORDS, OPTIONS, max)).map(({ partition, trace_id }) => [partition, trace_id]);
  expect(await named(10)).toEqual([
    [1, 'thinned'],
    [0, 'after'],
    [0, 'before'],
  ]);
  expect(await named(2)).toEqual([
    [1, 'thinned'],
    [0, 'after'],
  ]);
});
