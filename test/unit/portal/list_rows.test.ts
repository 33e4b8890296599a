import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  newCount,
  noRows,
  ROWS_MAX,
  rowsOfPages,
  withBatch,
  withWaitingShown,
  type Row,
  type Rows,
} from '../../../api/portal/web/lists/rows.ts';
import { extended, NOTHING_SELECTED, SELECTED_MAX, toggled } from '../../../api/portal/web/lists/selection.ts';

const at = (seconds: number): string => new Date(Date.UTC(2026, 10, 20) + seconds * 1000).toISOString();
const row = (id: number, seconds = id): Row & { state?: string } => ({ trace_id: `t${id}`, started_at: at(seconds) });
const ids = (rows: readonly Row[]): string[] => rows.map(({ trace_id }) => trace_id);
const listed = (...seconds: number[]): Rows<Row> => ({ ...noRows<Row>(), list: seconds.map((second) => row(second)) });

describe('rows of a list', () => {
  it('hold each trace once where two pages have it', () => {
    expect(
      ids(
        rowsOfPages([
          [row(3), row(2)],
          [row(2), row(1)],
        ]),
      ),
    ).toEqual(['t3', 't2', 't1']);
  });

  it(`hold at most ${ROWS_MAX}`, () => {
    const pages = Array.from({ length: 60 }, (_, page) => Array.from({ length: 100 }, (_, at) => row(page * 100 + at)));
    expect(rowsOfPages(pages)).toHaveLength(ROWS_MAX);
  });

  it('replace a changed trace in its place and let new ones wait', () => {
    const changed = { ...row(2), state: 'changed' };
    const rows = withBatch(listed(3, 2, 1), [changed, row(5), row(4)], 0);
    expect(rows.list[1]).toBe(changed);
    expect(ids(rows.list)).toEqual(['t3', 't2', 't1']);
    expect(ids(rows.waiting)).toEqual(['t5', 't4']);
    expect(newCount(rows)).toBe(2);
  });

  it('replace a changed trace that waits, and count it once', () => {
    const rows = withBatch(withBatch(listed(1), [row(5)], 0), [row(5)], 0);
    expect(newCount(rows)).toBe(1);
  });

  it('count the traces that the stream dropped', () => {
    expect(newCount(withBatch(listed(1), [row(2)], 40))).toBe(41);
  });

  it('never move the rows that are shown, whatever arrives', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50)), fc.array(fc.array(fc.nat(100))), (first, batches) => {
        const start: Rows<Row> = { ...noRows<Row>(), list: rowsOfPages([first.map((id) => row(id))]) };
        const end = batches.reduce(
          (rows, batch) =>
            withBatch(
              rows,
              batch.map((id) => row(id)),
              0,
            ),
          start,
        );
        expect(ids(end.list)).toEqual(ids(start.list));
        expect(new Set(ids(end.waiting)).size).toBe(end.waiting.length);
      }),
    );
  });

  it('show the waiting ones by their start', () => {
    const rows = withWaitingShown(withBatch(listed(4, 2), [row(5), row(3), row(1)], 0), true);
    expect(ids(rows.list)).toEqual(['t5', 't4', 't3', 't2', 't1']);
    expect(newCount(rows)).toBe(0);
  });

  it('leave a waiting trace to its page where the list goes on', () => {
    const rows = withWaitingShown(withBatch(listed(4, 2), [row(5), row(1)], 0), false);
    expect(ids(rows.list)).toEqual(['t5', 't4', 't2']);
  });
});

describe('selected rows', () => {
  const order = ['a', 'b', 'c', 'd', 'e'];

  it('are added and taken out one by one', () => {
    const both = toggled(toggled(NOTHING_SELECTED, 'a'), 'c');
    expect([...both.ids]).toEqual(['a', 'c']);
    expect([...toggled(both, 'a').ids]).toEqual(['c']);
  });

  it.each([
    ['downwards', 'b', 'd'],
    ['upwards', 'd', 'b'],
  ])('take a range %s from the row that was selected last', (_, from, to) => {
    const range = extended(toggled(NOTHING_SELECTED, from), order, to);
    expect([...range.ids].toSorted()).toEqual(['b', 'c', 'd']);
    expect(range.anchor).toBe(from);
  });

  it('take one row where no row was selected before', () => {
    expect(extended(NOTHING_SELECTED, order, 'c')).toEqual({ ids: new Set(['c']), anchor: 'c' });
  });

  it(`number at most ${SELECTED_MAX}`, () => {
    const many = Array.from({ length: SELECTED_MAX + 10 }, (_, at) => `t${at}`);
    const range = extended(toggled(NOTHING_SELECTED, 't0'), many, `t${SELECTED_MAX + 5}`);
    expect(range.ids.size).toBe(SELECTED_MAX);
  });
});
