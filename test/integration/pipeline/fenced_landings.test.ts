// The constraint by which every landed table refuses the rows of former owners: statements of workers that
// were paused, given up, or talk to a server that has just started.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { usageOf } from '../../../pipeline/domain/budgets/usage.ts';
import { Fences, type PartitionEpoch } from '../../../pipeline/landing/fences.ts';
import { pieceOfRows } from '../../../pipeline/landing/landing_piece.ts';
import { ClickHouseLandingStore } from '../../../pipeline/landing/landing_store.ts';
import {
  scoresLine,
  signedTrace,
  spanCells,
  textCells,
  traceCells,
  usageCells,
} from '../../../pipeline/landing/row_encoders.ts';
import { classifyStoreError } from '../../../sql/client/client.ts';
import { giveUpStatement } from '../../../sql/stores/landing_fences.ts';
import {
  JUDGE_SCORES,
  SPAN_TEXTS,
  SPANS,
  type TableSpec,
  TRACES,
  USAGE_EVENTS,
  type WireRow,
} from '../../../sql/stores/landing_tables.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';

let store: TestStore;
let fences: Fences;
let landing: ClickHouseLandingStore;
let next = 0;

beforeAll(async () => {
  store = await openTestStore();
  fences = new Fences(store.client, 'w1');
  landing = new ClickHouseLandingStore(store.client, fences);
});
afterAll(() => store.close());

/** Returns a row of a table, of a partition. */
function rowOf({ table }: TableSpec, partition: number): WireRow {
  next += 1;
  const span = aSpan({ trace_id: `trc_${next}` });
  const place = { partition, log_seq: next, log_index: 0 };
  const [trace] = tracesOf([span]);
  if (trace === undefined) throw new Error('a span makes a trace');
  switch (table) {
    case 'spans':
      return spanCells(span, place, 0, true);
    case 'span_texts_recent':
      return textCells(span, place, 0, 30) ?? [];
    case 'usage_events': {
      const usage = usageOf({ org_id: span.org_id, received_at: span.received_at, spans: [span] });
      return usageCells(usage, partition, next);
    }
    case 'traces':
      return signedTrace(traceCells(trace, partition, next), 1);
    case 'judge_scores': {
      const judgement = {
        judge_id: 'j',
        judge_version: 1,
        judge_name: 'j',
        score: 1,
        verdict: 'pass',
        reason: '',
      } as const;
      return scoresLine(trace, [judgement], { partition, version: next, scored_at: 1000 });
    }
  }
}

let statements = 0;
/** Lands a row of each of some partitions. */
async function land(
  spec: TableSpec,
  partitions: readonly number[],
  owned: readonly PartitionEpoch[],
  queryId?: string,
): Promise<void> {
  statements += 1;
  const rows = partitions.map((partition) => ({
    wire: rowOf(spec, partition),
    partition,
    epoch: 0,
    log_seq: next,
    key: '',
    event: null,
  }));
  const id = queryId ?? `land-w1-${spec.table}-${statements}-${store.database.database}`;
  await landing.insert(spec, pieceOfRows(spec, rows), owned, id);
}

/** Returns how a landing fails: what classifyStoreError says, or `landed`. */
const outcomeOf = (landed: Promise<void>): Promise<string> => landed.then(() => 'landed', classifyStoreError);

const countOf = async ({ table }: TableSpec, partition: number): Promise<number> =>
  Number(await store.database.run(`SELECT count() FROM ${table} WHERE partition = ${partition}`));

/** Lets the server forget what it has in memory, as a start does. */
const forget = async (): Promise<void> => {
  await store.database.run('TRUNCATE TABLE fenced_epochs');
  await store.database.run('TRUNCATE TABLE given_up_statements');
};

describe.each([SPANS, SPAN_TEXTS, USAGE_EVENTS, TRACES, JUDGE_SCORES])('$table', (spec) => {
  it('takes the rows of the newest owner, and none of a statement with a row of a former one', async () => {
    await fences.raise([
      [1, 4],
      [2, 4],
    ]);
    const before = [await countOf(spec, 1), await countOf(spec, 2)] as const;
    await fences.raise([[1, 5]]);
    const former: PartitionEpoch[] = [
      [1, 4],
      [2, 4],
    ];
    expect(await outcomeOf(land(spec, [1, 2], former))).toBe('fenced');
    expect(await outcomeOf(land(spec, [1], former))).toBe('fenced');
    expect([await countOf(spec, 1), await countOf(spec, 2)]).toEqual(before);
    expect(await outcomeOf(land(spec, [2], former))).toBe('landed');
    expect(await outcomeOf(land(spec, [1], [[1, 5]]))).toBe('landed');
    expect([await countOf(spec, 1), await countOf(spec, 2)]).toEqual([before[0] + 1, before[1] + 1]);
    await store.database.run('DELETE FROM landing_fences WHERE partition IN (1, 2)');
    await forget();
  });

  it('refuses rows of a partition that the statement does not name', async () => {
    await fences.raise([
      [3, 1],
      [4, 1],
    ]);
    expect(await outcomeOf(land(spec, [3, 4], [[3, 1]]))).toBe('fenced');
    expect(await outcomeOf(land(spec, [3], []))).toBe('fenced');
  });

  it('refuses a statement that was given up before it began', async () => {
    await fences.raise([[5, 1]]);
    const before = await countOf(spec, 5);
    const id = `land-w1-given-up-${spec.table}-${store.database.database}`;
    await giveUpStatement(store.client, id);
    expect(await outcomeOf(land(spec, [5], [[5, 1]], id))).toBe('fenced');
    expect(await countOf(spec, 5)).toBe(before);
    expect(await outcomeOf(land(spec, [5], [[5, 1]]))).toBe('landed');
  });
});

it('a server that has just started refuses every landing once, and then those of former owners', async () => {
  await fences.raise([[6, 1]]);
  await fences.raise([[6, 2]]);
  await forget();
  expect(await outcomeOf(land(SPANS, [6], [[6, 1]]))).toBe('fenced');
  await forget();
  expect(await outcomeOf(land(SPANS, [6], [[6, 2]]))).toBe('fenced');
  expect(await outcomeOf(land(SPANS, [6], [[6, 1]]))).toBe('fenced');
  expect(await outcomeOf(land(SPANS, [6], [[6, 2]]))).toBe('landed');
});

it('a server that has started since refuses a statement that was given up before', async () => {
  await fences.raise([[11, 1]]);
  const id = `land-w1-late-${store.database.database}`;
  await giveUpStatement(store.client, id);
  await forget();
  expect(await outcomeOf(land(SPANS, [11], [[11, 1]]))).toBe('fenced');
  expect(await outcomeOf(land(SPANS, [11], [[11, 1]], id))).toBe('fenced');
  expect(await outcomeOf(land(SPANS, [11], [[11, 1]]))).toBe('landed');
});

it('a fence of a worker of an older version, which writes to landing_fences alone, holds at once', async () => {
  await fences.raise([[7, 1]]);
  expect(await outcomeOf(land(SPANS, [7], [[7, 1]]))).toBe('landed');
  await store.database.run("INSERT INTO landing_fences (partition, epoch, worker_id) VALUES (7, 2, 'old')");
  expect(await outcomeOf(land(SPANS, [7], [[7, 1]]))).toBe('fenced');
});

it('a worker that raises an older fence late is fenced off, and fences nobody off', async () => {
  await fences.raise([[8, 1]]);
  await fences.raise([[8, 3]]);
  await fences.raise([[8, 2]]);
  expect(await outcomeOf(land(SPANS, [8], [[8, 2]]))).toBe('fenced');
  expect(await outcomeOf(land(SPANS, [8], [[8, 3]]))).toBe('landed');
});

it('of fences that are raised at the same time the newest holds, whatever landings run beside them', async () => {
  const epochs = Array.from({ length: 12 }, (_, index) => index + 1);
  await fences.raise([[10, 1]]);
  const beside = (async () => {
    for (let turn = 0; turn < 40; turn += 1) await land(SPANS, [10], [[10, 1]]);
  })();
  await Promise.all(epochs.map((epoch) => new Fences(store.client, `w${epoch}`).raise([[9, epoch]])));
  await beside;
  const outcomes = await Promise.all(epochs.map((epoch) => outcomeOf(land(SPANS, [9], [[9, epoch]]))));
  expect(outcomes).toEqual(epochs.map((epoch) => (epoch === 12 ? 'landed' : 'fenced')));
});

it('statements that are no landings are not asked for an epoch', async () => {
  const before = await countOf(SPANS, 0);
  await store.landSpans([aSpan()]);
  expect(await countOf(SPANS, 0)).toBe(before + 1);
});
