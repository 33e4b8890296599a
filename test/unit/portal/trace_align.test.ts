// The alignment of two traces: every span once, in order, and nothing changed between a trace and
// itself.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Alignment, alignTrees } from '../../../api/portal/web/trace/compare/align.ts';
import { countStates, shownRows, stateOf } from '../../../api/portal/web/trace/compare/compared_rows.ts';
import { CELLS_TOTAL_MAX, matchSiblings } from '../../../api/portal/web/trace/compare/match_siblings.ts';
import { changeNames } from '../../../api/portal/web/trace/compare/span_changes.ts';
import { buildTree, type Tree } from '../../../api/portal/web/trace/model/tree.ts';
import { anyOutline, type SpanGiven, treeOf } from './trace_outlines.ts';

const THRESHOLD = 10;
const anyTree = anyOutline.map(buildTree);

const spansOf = (side: Int32Array): number[] => [...side].filter((span) => span >= 0);
const allOf = (tree: Tree): number[] => Array.from({ length: tree.size }, (_, i) => i);

/** Returns each row as the ids of both spans and what became of it. */
const shown = (left: Tree, right: Tree, alignment: Alignment): string[] =>
  Array.from({ length: alignment.size }, (_, row) => {
    const [a, b] = [left.spanId[alignment.left[row] ?? -1] ?? '-', right.spanId[alignment.right[row] ?? -1] ?? '-'];
    return `${a} ${b} ${stateOf(alignment, row)}`;
  });

const run = (...children: SpanGiven[]): Tree =>
  treeOf([{ name: 'root', duration: 100 }, ...children.map((child) => ({ parent: 0, kind: 'tool', ...child }))]);
const align = (left: Tree, right: Tree): string[] => shown(left, right, alignTrees(left, right, THRESHOLD));

describe('the alignment of two traces', () => {
  it('holds every span of both traces once, in its order', () => {
    fc.assert(
      fc.property(anyTree, anyTree, (left, right) => {
        const alignment = alignTrees(left, right, THRESHOLD);
        expect(spansOf(alignment.left)).toEqual(allOf(left));
        expect(spansOf(alignment.right)).toEqual(allOf(right));
      }),
    );
  });

  it('changes nothing between a trace and itself', () => {
    fc.assert(
      fc.property(anyTree, (tree) => {
        const alignment = alignTrees(tree, tree, THRESHOLD);
        expect([...alignment.left]).toEqual([...alignment.right]);
        expect(countStates(alignment)).toEqual({ same: tree.size, changed: 0, left: 0, right: 0 });
      }),
    );
  });

  it('pairs only spans of one kind, whose parents are a pair too', () => {
    fc.assert(
      fc.property(anyTree, anyTree, (left, right) => {
        const { size, ...rows } = alignTrees(left, right, THRESHOLD);
        for (let row = 0; row < size; row += 1) {
          const [a, b, above] = [rows.left[row] ?? -1, rows.right[row] ?? -1, rows.parent[row] ?? -1];
          if (a >= 0) expect(left.parent[a]).toBe(above < 0 ? -1 : rows.left[above]);
          if (b >= 0) expect(right.parent[b]).toBe(above < 0 ? -1 : rows.right[above]);
          if (a >= 0 && b >= 0) expect(left.kind[a]).toBe(right.kind[b]);
        }
      }),
    );
  });

  it('finds an inserted, a removed and a failed step', () => {
    const before = run({ name: 'search' }, { name: 'check' }, { name: 'book' });
    const after = run({ name: 'search' }, { name: 'book', outcome: 'error' }, { name: 'report' });
    expect(align(before, after)).toEqual([
      'root root same',
      'search search same',
      'check - left',
      'book book changed',
      '- report right',
    ]);
  });

  it('pairs a lone step with the lone step of its kind in its place, as renamed', () => {
    const before = run({ name: 'search' }, { name: 'gpt-4o', kind: 'llm' }, { name: 'book' });
    const after = run({ name: 'search' }, { name: 'gpt-4o-mini', kind: 'llm' }, { name: 'book' });
    expect(align(before, after)[2]).toBe('gpt-4o gpt-4o-mini changed');
    expect(changeNames(alignTrees(before, after, THRESHOLD).changes[2] ?? 0)).toEqual(['name']);
  });

  it('does not pair a tool call with a model call in its place', () => {
    expect(align(run({ name: 'a' }), run({ name: 'b', kind: 'llm' })).slice(1)).toEqual(['a - left', '- b right']);
  });

  it('pairs repeated steps by their durations', () => {
    const step = (id: string, duration: number): SpanGiven => ({ name: 'search', id, duration });
    const before = run(step('a1', 10), step('a2', 90), step('a3', 10));
    const after = run(step('b1', 88), step('b2', 11));
    expect(align(before, after).slice(1)).toEqual(['a1 - left', 'a2 b1 same', 'a3 b2 same']);
  });

  it.each<[string, SpanGiven, SpanGiven, string[]]>([
    ['a duration beyond the threshold', { name: 's', duration: 100 }, { name: 's', duration: 111 }, ['duration']],
    ['a duration within the threshold', { name: 's', duration: 100 }, { name: 's', duration: 110 }, []],
    [
      'a duration of less than a hundredth of the trace',
      { name: 's', duration: 0.1 },
      { name: 's', duration: 0.9 },
      [],
    ],
    ['other tokens', { name: 's', tokens: [5, 1] }, { name: 's', tokens: [5, 2] }, ['tokens']],
    ['a cost beyond the threshold', { name: 's', cost: 1 }, { name: 's', cost: 1.2 }, ['cost']],
    ['a cost where there was none', { name: 's', cost: 0 }, { name: 's', cost: 0.1 }, ['cost']],
    ['another model', { name: 's', model: 'a' }, { name: 's', model: 'b' }, ['model']],
    ['another outcome', { name: 's' }, { name: 's', outcome: 'timeout' }, ['outcome']],
  ])('judges %s', (_, from, to, expected) => {
    expect(changeNames(alignTrees(run(from), run(to), THRESHOLD).changes[1] ?? 0)).toEqual(expected);
  });

  it('aligns 10,000 spans below one parent, with steps left out and added', () => {
    const spans = Array.from({ length: 10_000 }, (_, i): SpanGiven => ({ name: `step_${i % 40}`, id: `s${i}` }));
    const changed = spans.filter((_, i) => i % 997 !== 0);
    const alignment = alignTrees(run(...spans), run(...changed), THRESHOLD);
    const counts = countStates(alignment);
    expect(counts.same + counts.left).toBe(10_001);
    expect(counts.same).toBeGreaterThan(9000);
  });

  it('aligns a chain of 20,000 spans', () => {
    const chain = treeOf(
      Array.from({ length: 20_000 }, (_, i): SpanGiven => ({ name: 'deep', id: `s${i}`, parent: i - 1 })),
    );
    expect(countStates(alignTrees(chain, chain, THRESHOLD)).same).toBe(20_000);
  });
});

describe('the match of siblings', () => {
  const list = fc.array(fc.record({ key: fc.nat(3), duration: fc.nat(50) }), { maxLength: 25 }).map((items) => ({
    keys: items.map(({ key }) => key),
    durations: items.map(({ duration }) => duration),
  }));

  it.each([
    ['by a table', CELLS_TOTAL_MAX],
    ['by occurrences', 0],
  ])('keeps the order of both and matches equal keys only, %s', (_, cells) => {
    fc.assert(
      fc.property(list, list, (left, right) => {
        const matches = matchSiblings(left, right, { left: cells });
        for (const [at, [i, j]] of matches.entries()) {
          expect(left.keys[i]).toBe(right.keys[j]);
          const before = matches[at - 1];
          if (before !== undefined) expect([before[0] < i, before[1] < j]).toEqual([true, true]);
        }
      }),
    );
  });

  it('finds as many matches as any order allows', () => {
    const longestCommon = (a: readonly number[], b: readonly number[]): number => {
      if (a.length === 0 || b.length === 0) return 0;
      const [first, ...rest] = a;
      const at = b.findIndex((key) => key === first);
      const without = longestCommon(rest, b);
      return at < 0 ? without : Math.max(without, 1 + longestCommon(rest, b.slice(at + 1)));
    };
    const short = list.filter(({ keys }) => keys.length <= 9);
    fc.assert(
      fc.property(short, short, (left, right) => {
        const matches = matchSiblings(left, right, { left: CELLS_TOTAL_MAX });
        expect(matches).toHaveLength(longestCommon(left.keys, right.keys));
      }),
    );
  });
});

describe('the rows of a comparison', () => {
  it('show what changed with the rows above it, and count what they leave out', () => {
    const before = run({ name: 'a' }, { name: 'b' }, { name: 'c' }, { name: 'd' });
    const after = run({ name: 'a' }, { name: 'b' }, { name: 'c', outcome: 'error' }, { name: 'd' });
    const alignment = alignTrees(before, after, THRESHOLD);
    expect(shownRows(alignment, new Set())).toEqual([{ row: 0 }, { from: 1, to: 3 }, { row: 3 }, { from: 4, to: 5 }]);
    expect(shownRows(alignment, new Set([1]))).toHaveLength(5);
    expect(shownRows(alignment, null)).toHaveLength(5);
  });

  it('hold every row once, shown or counted', () => {
    fc.assert(
      fc.property(anyTree, anyTree, (left, right) => {
        const alignment = alignTrees(left, right, THRESHOLD);
        const rows = shownRows(alignment, new Set()).flatMap((row) =>
          'row' in row ? [row.row] : Array.from({ length: row.to - row.from }, (_, i) => row.from + i),
        );
        expect(rows).toEqual(Array.from({ length: alignment.size }, (_, row) => row));
      }),
    );
  });
});
