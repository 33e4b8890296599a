import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SPAN_FLAGS } from '../../../pipeline/domain/traces/span_flags.ts';
import { ownTimes, subtreeRanges, subtreeSums } from '../../../api/portal/web/trace/model/sums.ts';
import { buildTree, childrenOf, isLeaf, kindOf, nameOf, type Tree } from '../../../api/portal/web/trace/model/tree.ts';
import { anyOutline, outlineOf, treeOf } from './trace_outlines.ts';

const listed = (tree: Tree, parent: number) => childrenOf(tree, parent).map((i) => tree.spanId[i]);

describe('the tree of an outline', () => {
  it('puts parents before children and siblings in order of their start', () => {
    const tree = treeOf([
      { name: 'late', parent: 2, start: 50 },
      { name: 'early', parent: 2, start: 10 },
      { name: 'root' },
    ]);
    expect(tree.spanId).toEqual(['root', 'early', 'late']);
    expect(listed(tree, 0)).toEqual(['early', 'late']);
  });

  it('moves the message of an error with its span', () => {
    const tree = treeOf([{ name: 'child', parent: 1, error: 'payment declined' }, { name: 'root' }]);
    expect(tree.errors.get(tree.indexOf.get('child') ?? -1)).toBe('payment declined');
  });

  it('tells a model call of a judge from the other model calls', () => {
    const tree = treeOf([
      { name: 'call', kind: 'llm' },
      { name: 'verdict', kind: 'llm', flags: SPAN_FLAGS.judge_call | SPAN_FLAGS.has_texts },
    ]);
    expect([kindOf(tree, 0), kindOf(tree, 1)]).toEqual(['llm', 'judge']);
  });

  it('keeps every span once, whatever the parents say', () => {
    fc.assert(
      fc.property(anyOutline, (outline) => {
        const tree = buildTree(outline);
        expect([...tree.spanId].sort()).toEqual([...outline.spans.span_id].sort());
      }),
    );
  });

  it('keeps the subtree of each span in one stretch', () => {
    fc.assert(
      fc.property(anyOutline, (outline) => {
        const tree = buildTree(outline);
        for (let i = 0; i < tree.size; i += 1) {
          const up = tree.parent[i] ?? -1;
          expect(up).toBeLessThan(i);
          expect(tree.depth[i]).toBe(up < 0 ? 0 : (tree.depth[up] ?? 0) + 1);
          if (up >= 0) expect(tree.subtreeEnd[up]).toBeGreaterThanOrEqual(tree.subtreeEnd[i] ?? 0);
          expect(isLeaf(tree, i)).toBe(listed(tree, i).length === 0);
        }
      }),
    );
  });

  it('builds a chain of 50,000 spans without recursion', () => {
    const tree = treeOf(Array.from({ length: 50_000 }, (_, i) => ({ name: `s${i % 7}`, id: `s${i}`, parent: i - 1 })));
    expect(tree.depth[49_999]).toBe(49_999);
    expect(nameOf(tree, 49_999)).toBe('s5');
  });

  it('has no span for an empty outline', () => {
    const tree = buildTree(outlineOf([]));
    expect([tree.size, tree.from, tree.to]).toEqual([0, 0, 0]);
  });
});

describe('own time', () => {
  it('is the duration less the time in which a child runs', () => {
    const tree = treeOf([
      { name: 'root', start: 0, duration: 100 },
      { name: 'a', parent: 0, start: 10, duration: 30 },
      { name: 'b', parent: 0, start: 20, duration: 40 },
    ]);
    expect([...ownTimes(tree)]).toEqual([50, 30, 40]);
  });

  it('ignores the part of a child that lies outside its parent', () => {
    const tree = treeOf([
      { name: 'root', start: 50, duration: 50 },
      { name: 'early', parent: 0, start: 0, duration: 60 },
      { name: 'late', parent: 0, start: 90, duration: 500 },
    ]);
    expect(ownTimes(tree)[0]).toBe(30);
  });

  it('counts the milliseconds in which no child runs', () => {
    fc.assert(
      fc.property(anyOutline, (outline) => {
        const tree = buildTree(outline);
        const own = ownTimes(tree);
        for (let i = 0; i < tree.size; i += 1) {
          const children = childrenOf(tree, i);
          let free = 0;
          for (let at = tree.start[i] ?? 0; at < (tree.end[i] ?? 0); at += 1) {
            if (!children.some((child) => (tree.start[child] ?? 0) <= at && at < (tree.end[child] ?? 0))) free += 1;
          }
          expect(own[i]).toBe(free);
        }
      }),
    );
  });
});

describe('sums of subtrees', () => {
  it('add the cost of a span to those of its ancestors, and to no other', () => {
    fc.assert(
      fc.property(anyOutline, (outline) => {
        const tree = buildTree(outline);
        const sums = subtreeSums(tree, tree.cost);
        for (let i = 0; i < tree.size; i += 1) {
          const below = tree.cost.slice(i, tree.subtreeEnd[i]).reduce((sum, cost) => sum + cost, 0);
          expect(sums[i]).toBe(below);
        }
      }),
    );
  });

  it('cover children that outlive their parent', () => {
    const tree = treeOf([
      { name: 'root', start: 10, duration: 10 },
      { name: 'worker', parent: 0, start: 5, duration: 100 },
    ]);
    const range = subtreeRanges(tree);
    expect([range.from[0], range.to[0]]).toEqual([5, 105]);
  });
});
