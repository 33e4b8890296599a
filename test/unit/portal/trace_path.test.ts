import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findCause, recoveredErrors, rootOf } from '../../../api/portal/web/trace/model/cause.ts';
import { criticalPath, IDLE } from '../../../api/portal/web/trace/model/critical_path.ts';
import { foldableGaps, idleGaps } from '../../../api/portal/web/trace/model/idle.ts';
import { buildTree, hasFailed, isWork, type Tree } from '../../../api/portal/web/trace/model/tree.ts';
import { costParts, timeParts } from '../../../api/portal/web/trace/model/where.ts';
import { anyOutline, treeOf } from './trace_outlines.ts';

function stretches(tree: Tree): [string, number, number][] {
  const path = criticalPath(tree);
  return Array.from(path.span, (span, at) => [
    span === IDLE ? 'idle' : (tree.spanId[span] ?? ''),
    path.from[at] ?? 0,
    path.to[at] ?? 0,
  ]);
}

describe('the critical path', () => {
  it('gives each instant to the child that ended last, and time between children to nobody', () => {
    const tree = treeOf([
      { name: 'root', start: 0, duration: 100 },
      { name: 'short', parent: 0, start: 10, duration: 20 },
      { name: 'long', parent: 0, start: 10, duration: 50 },
      { name: 'last', parent: 0, start: 70, duration: 30 },
    ]);
    expect(stretches(tree)).toEqual([
      ['idle', 0, 10],
      ['long', 10, 60],
      ['idle', 60, 70],
      ['last', 70, 100],
    ]);
  });

  it('gives time to the parent while another span works beside the path', () => {
    const tree = treeOf([
      { name: 'root', start: 0, duration: 100 },
      { name: 'a', parent: 0, start: 0, duration: 100 },
      { name: 'a1', parent: 1, start: 60, duration: 40 },
      { name: 'b', parent: 0, start: 0, duration: 50 },
    ]);
    expect(stretches(tree)).toEqual([
      ['a', 0, 50],
      ['idle', 50, 60],
      ['a1', 60, 100],
    ]);
  });

  it('counts the own time of a model call as work, also where tools are recorded below it', () => {
    const tree = treeOf([
      { name: 'root', start: 0, duration: 30 },
      { name: 'call', kind: 'llm', parent: 0, start: 0, duration: 20 },
      { name: 'tool', kind: 'tool', parent: 1, start: 25, duration: 5 },
    ]);
    expect(stretches(tree)).toEqual([
      ['call', 0, 20],
      ['idle', 20, 25],
      ['tool', 25, 30],
    ]);
  });

  it('follows a child that outlives its parent', () => {
    const tree = treeOf([
      { name: 'root', start: 0, duration: 10 },
      { name: 'worker', parent: 0, start: 20, duration: 80 },
    ]);
    expect(stretches(tree)).toEqual([
      ['idle', 0, 20],
      ['worker', 20, 100],
    ]);
  });

  it('covers the trace exactly, each instant once, with spans that run then', () => {
    fc.assert(
      fc.property(anyOutline, (outline) => {
        const tree = buildTree(outline);
        const path = criticalPath(tree);
        let at = tree.from;
        path.span.forEach((span, index) => {
          expect(path.from[index]).toBe(at);
          at = path.to[index] ?? 0;
          expect(at).toBeGreaterThan(path.from[index] ?? 0);
          if (span === IDLE) return;
          expect(path.from[index]).toBeGreaterThanOrEqual(tree.start[span] ?? 0);
          expect(at).toBeLessThanOrEqual(tree.end[span] ?? 0);
        });
        expect(at).toBe(tree.to);
      }),
    );
  });

  it('is idle only where no span works', () => {
    fc.assert(
      fc.property(anyOutline, (outline) => {
        const tree = buildTree(outline);
        const path = criticalPath(tree);
        const gaps = idleGaps(tree);
        path.span.forEach((span, index) => {
          if (span !== IDLE && isWork(tree, span)) return;
          const inGap = gaps.from.some(
            (from, g) => from <= (path.from[index] ?? 0) && (path.to[index] ?? 0) <= (gaps.to[g] ?? 0),
          );
          expect(span === IDLE).toBe(inGap);
        });
      }),
    );
  });

  it('handles a chain of 50,000 spans', () => {
    const tree = treeOf(
      Array.from({ length: 50_000 }, (_, i) => ({ name: 's', id: `s${i}`, parent: i - 1, start: 0, duration: 1000 })),
    );
    expect(stretches(tree)).toEqual([['s49999', 0, 1000]]);
  });
});

describe('where it went', () => {
  it('adds up to the duration and to the cost of the trace', () => {
    fc.assert(
      fc.property(anyOutline, (outline) => {
        const tree = buildTree(outline);
        const time = timeParts(tree, criticalPath(tree)).reduce((sum, { amount }) => sum + amount, 0);
        expect(time).toBe(tree.to - tree.from);
        const cost = costParts(tree).reduce((sum, { amount }) => sum + amount, 0);
        expect(cost).toBe(tree.cost.reduce((sum, amount) => sum + amount, 0));
      }),
    );
  });

  it('counts the spans of a name on the path and leads to the first of them', () => {
    const tree = treeOf([
      { name: 'root', start: 0, duration: 100 },
      { name: 'search', id: 'x1', kind: 'tool', parent: 0, start: 0, duration: 30 },
      { name: 'search', id: 'x2', kind: 'tool', parent: 0, start: 30, duration: 30 },
      { name: 'plan', kind: 'llm', parent: 0, start: 60, duration: 25 },
    ]);
    expect(timeParts(tree, criticalPath(tree))).toEqual([
      { kind: 'tool', name: 'search', amount: 60, share: 0.6, spans: 2, first: 1 },
      { kind: 'llm', name: 'plan', amount: 25, share: 0.25, spans: 1, first: 3 },
      { kind: 'idle', name: '', amount: 15, share: 0.15, spans: 0, first: -1 },
    ]);
  });

  it('groups cost by model, and by name where no model was called', () => {
    const tree = treeOf([
      { name: 'a', kind: 'llm', model: 'gpt-4o', cost: 3 },
      { name: 'b', kind: 'llm', model: 'gpt-4o', cost: 4 },
      { name: 'sandbox', kind: 'tool', cost: 3 },
    ]);
    expect(costParts(tree).map(({ name, amount, spans }) => [name, amount, spans])).toEqual([
      ['gpt-4o', 7, 2],
      ['sandbox', 3, 1],
    ]);
  });
});

describe('idle time', () => {
  it('offers gaps above 5 % of the trace for folding', () => {
    const tree = treeOf([
      { name: 'root', start: 0, duration: 1000 },
      { name: 'a', parent: 0, start: 0, duration: 100 },
      { name: 'b', parent: 0, start: 140, duration: 100 },
      { name: 'c', parent: 0, start: 900, duration: 100 },
    ]);
    expect(Array.from(idleGaps(tree).from)).toEqual([100, 240]);
    expect(Array.from(foldableGaps(tree).from)).toEqual([240]);
    expect(Array.from(foldableGaps(tree).to)).toEqual([900]);
  });
});

describe('the cause of a failure', () => {
  const failed = [
    { name: 'task', outcome: 'error', start: 0, duration: 100 },
    { name: 'search', parent: 0, outcome: 'error', start: 0, duration: 10 },
    { name: 'book', parent: 0, outcome: 'error', start: 40, duration: 60 },
    { name: 'pay', parent: 2, outcome: 'timeout', start: 50, duration: 50 },
    { name: 'answer', parent: 0, start: 20, duration: 10 },
  ];

  it('is the failed child that ended last, down to the innermost', () => {
    const tree = treeOf(failed);
    const cause = findCause(tree, rootOf(tree, 'task'));
    expect(cause?.chain.map((i) => tree.spanId[i])).toEqual(['task', 'book', 'pay']);
    expect(recoveredErrors(tree, cause).map((i) => tree.spanId[i])).toEqual(['search']);
  });

  it('is absent if the root succeeded, and all failures are recovered ones', () => {
    const tree = treeOf(failed.map((span) => (span.name === 'task' ? { ...span, outcome: 'success' } : span)));
    expect(findCause(tree, rootOf(tree, 'task'))).toBeNull();
    expect(recoveredErrors(tree, null).map((i) => tree.spanId[i])).toEqual(['search', 'pay']);
  });

  it('is the innermost failure that ended last while the root has not arrived', () => {
    const tree = treeOf(failed.slice(1).map((span) => ({ ...span, parent: span.name === 'pay' ? 1 : -1 })));
    const cause = findCause(tree, rootOf(tree, null));
    expect(cause?.chain.map((i) => tree.spanId[i])).toEqual(['book', 'pay']);
  });

  it('is always a failed span without a failed child', () => {
    fc.assert(
      fc.property(anyOutline, (outline) => {
        const tree = buildTree(outline);
        for (const root of [rootOf(tree, outline.trace.root_span_name), -1]) {
          const cause = findCause(tree, root);
          if (cause === null) continue;
          expect(cause.chain.every((i) => hasFailed(tree, i))).toBe(true);
          for (let i = 0; i < tree.size; i += 1)
            if (tree.parent[i] === cause.span) expect(hasFailed(tree, i)).toBe(false);
        }
      }),
    );
  });
});
