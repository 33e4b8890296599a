import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findSpans, mergeMatches, stepThrough } from '../../../api/portal/web/trace/model/find.ts';
import { findGroups, sumGroup } from '../../../api/portal/web/trace/model/folding.ts';
import {
  groupOfRow,
  isGroupRow,
  parentRow,
  placesOf,
  rowOfGroup,
  rowStandingFor,
  unfoldTo,
  visibleRows,
  type Folds,
} from '../../../api/portal/web/trace/model/rows.ts';
import { subtreeSums } from '../../../api/portal/web/trace/model/sums.ts';
import { buildTree } from '../../../api/portal/web/trace/model/tree.ts';
import { anyOutline, treeOf, type SpanGiven } from './trace_outlines.ts';

const NONE: Folds = { closedSpans: new Set(), openGroups: new Set() };
const searches = (count: number, parent: number, from = 0): SpanGiven[] =>
  Array.from({ length: count }, (_, i) => ({
    name: 'search',
    id: `search${from + i}`,
    kind: 'tool',
    parent,
    start: (from + i) * 10,
    duration: 10,
    cost: 1,
  }));

const outlineWithFolds = fc.record({
  outline: anyOutline,
  closed: fc.array(fc.nat(59), { maxLength: 8 }),
  open: fc.array(fc.nat(5), { maxLength: 3 }),
});

describe('folding of alike siblings', () => {
  it('folds five consecutive siblings of one kind and name, and not four', () => {
    expect(findGroups(treeOf([{ name: 'root' }, ...searches(5, 0)])).members).toEqual(Int32Array.of(5));
    expect(findGroups(treeOf([{ name: 'root' }, ...searches(4, 0)])).members).toHaveLength(0);
  });

  it('ends a group where a sibling of another name stands between', () => {
    const tree = treeOf([
      { name: 'root' },
      ...searches(3, 0),
      { name: 'answer', parent: 0, start: 30 },
      ...searches(3, 0, 4),
    ]);
    expect(findGroups(tree).members).toHaveLength(0);
  });

  it('sums the members and what runs below them', () => {
    const tree = treeOf([{ name: 'root' }, ...searches(5, 0), { name: 'call', parent: 1, cost: 7, start: 1 }]);
    const cost = subtreeSums(tree, tree.cost);
    const sums = sumGroup(tree, findGroups(tree), 0, { cost, inputTokens: cost, outputTokens: cost });
    expect(sums).toMatchObject({ from: 0, to: 50, busy: 50, cost: 12, failed: 0 });
  });
});

describe('visible rows', () => {
  it('show a group as one row until it is unfolded', () => {
    const tree = treeOf([{ name: 'root' }, ...searches(5, 0), { name: 'answer', parent: 0, start: 90 }]);
    const groups = findGroups(tree);
    expect([...visibleRows(tree, groups, NONE)]).toEqual([0, rowOfGroup(0), 6]);
    expect([...visibleRows(tree, groups, { ...NONE, openGroups: new Set([0]) })]).toEqual([
      0,
      rowOfGroup(0),
      1,
      2,
      3,
      4,
      5,
      6,
    ]);
  });

  it('are each span and each group once, in order, less what is folded', () => {
    fc.assert(
      fc.property(outlineWithFolds, ({ outline, closed, open }) => {
        const tree = buildTree(outline);
        const groups = findGroups(tree);
        const folds = { closedSpans: new Set(closed), openGroups: new Set(open) };
        const rows = [...visibleRows(tree, groups, folds)];
        const seen = new Set(rows);
        expect(seen.size).toBe(rows.length);
        const expected = new Set<number>();
        for (let i = 0; i < tree.size; i += 1) expected.add(rowStandingFor(tree, groups, folds, i));
        for (const row of expected) expect(seen.has(row)).toBe(true);
        const firsts = rows.map((row) => (isGroupRow(row) ? (groups.first[groupOfRow(row)] ?? 0) - 0.5 : row));
        expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
      }),
    );
  });

  it('contain a span after unfolding to it', () => {
    fc.assert(
      fc.property(outlineWithFolds, fc.nat(59), ({ outline, closed, open }, wanted) => {
        const tree = buildTree(outline);
        if (tree.size === 0) return;
        const groups = findGroups(tree);
        const span = wanted % tree.size;
        const folds = unfoldTo(tree, groups, { closedSpans: new Set(closed), openGroups: new Set(open) }, span);
        expect(visibleRows(tree, groups, folds)).toContain(span);
      }),
    );
  });

  it('have levels and positions that agree with their parents', () => {
    fc.assert(
      fc.property(anyOutline, (outline) => {
        const tree = buildTree(outline);
        const groups = findGroups(tree);
        const places = placesOf(tree, groups);
        const levelOf = (row: number) =>
          isGroupRow(row) ? (places.level[groups.first[groupOfRow(row)] ?? 0] ?? 0) - 1 : (places.level[row] ?? 0);
        const openGroups = new Set(groups.first.keys());
        const siblings = new Map<number | null, number>();
        for (const row of visibleRows(tree, groups, { ...NONE, openGroups })) {
          const up = parentRow(tree, groups, row);
          expect(levelOf(row)).toBe(up === null ? 1 : levelOf(up) + 1);
          const position = (siblings.get(up) ?? 0) + 1;
          siblings.set(up, position);
          expect(isGroupRow(row) ? places.groupPosition[groupOfRow(row)] : places.position[row]).toBe(position);
        }
        for (let i = 0; i < tree.size; i += 1) expect(places.setSize[i]).toBe(siblings.get(parentRow(tree, groups, i)));
      }),
    );
  });
});

describe('find', () => {
  const tree = treeOf([
    { name: 'Plan trip', kind: 'llm', model: 'gpt-4o' },
    { name: 'book', id: 'spn_ab12', error: 'Payment declined' },
    { name: 'answer' },
  ]);
  const found = (text: string) => [...findSpans(tree, text).spans];

  it('looks at names, models, ids and errors, ignoring case', () => {
    expect(found('plan')).toEqual([0]);
    expect(found('GPT-4')).toEqual([0]);
    expect(found('AB12')).toEqual([1]);
    expect(found('payment')).toEqual([1]);
    expect(found('  ')).toEqual([]);
    expect(found('nothing')).toEqual([]);
  });

  it('adds the spans whose texts match', () => {
    const merged = mergeMatches(tree, findSpans(tree, 'payment'), [2, 1, -1, 99]);
    expect([...merged.spans]).toEqual([1, 2]);
  });

  it('steps to the next and the previous match and goes round at the ends', () => {
    const list = Int32Array.of(2, 5, 9);
    expect([stepThrough(list, 2, 1), stepThrough(list, 9, 1), stepThrough(list, -1, 1)]).toEqual([5, 2, 2]);
    expect([stepThrough(list, 5, -1), stepThrough(list, 1, -1), stepThrough(list, 7, -1)]).toEqual([2, 9, 5]);
    expect(stepThrough(new Int32Array(0), 3, 1)).toBe(-1);
  });
});
