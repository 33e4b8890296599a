// The sheet around a laid-out graph of steps.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitSheet } from '../../../api/portal/web/trace/graph/fit.ts';
import type { Layout } from '../../../api/portal/web/trace/graph/shape.ts';

const NODE = { width: 200, height: 40 };
const layoutOf = (given: Pick<Layout, 'nodes' | 'edges'>): Layout => ({ width: 0, height: 0, ...given });
const point = fc.record({ x: fc.integer({ min: -900, max: 900 }), y: fc.integer({ min: -900, max: 900 }) });
const layouts = fc.record({
  nodes: fc.array(point, { minLength: 1, maxLength: 6 }),
  edges: fc.array(fc.array(point, { minLength: 1, maxLength: 5 }), { maxLength: 6 }),
});

describe('the sheet of the graph', () => {
  it('moves a graph whose edge leads past the left border', () => {
    const sheet = fitSheet(
      layoutOf({
        nodes: [{ x: 116, y: 36 }],
        edges: [
          [
            { x: 116, y: 56 },
            { x: -40, y: 90 },
            { x: 116, y: 120 },
          ],
        ],
      }),
      NODE,
      ['×49'],
    );
    expect(sheet.edges[0]?.[1]).toEqual({ x: 16, y: 90 });
    expect(sheet.nodes).toEqual([{ x: 172, y: 36 }]);
    expect(sheet.labels).toEqual([{ x: 20, y: 90 }]);
  });

  it('puts a label to the left of its edge where a node would cover it to the right', () => {
    const sheet = fitSheet(layoutOf({ nodes: [{ x: 100, y: 0 }], edges: [[{ x: -10, y: 0 }]] }), NODE, ['×49']);
    const [label, node] = [sheet.labels[0], sheet.nodes[0]];
    expect((label?.x ?? 0) + '×49'.length * 8).toBeLessThanOrEqual((node?.x ?? 0) - NODE.width / 2);
  });

  it('has room for a label at the right border', () => {
    const edges = [[{ x: 500, y: 0 }]];
    const [bare, labelled] = ['', '×1,204'].map((label) => fitSheet(layoutOf({ nodes: [], edges }), NODE, [label]));
    expect(bare?.labels).toEqual([null]);
    expect(labelled?.width).toBeGreaterThan((bare?.width ?? 0) + 40);
  });

  it('holds every node, edge and label, and keeps their distances', () => {
    fc.assert(
      fc.property(layouts, (given) => {
        const sheet = fitSheet(
          layoutOf(given),
          NODE,
          given.edges.map(() => '×2'),
        );
        const corners = [
          ...sheet.nodes.flatMap(({ x, y }) => [
            { x: x - NODE.width / 2, y: y - NODE.height / 2 },
            { x: x + NODE.width / 2, y: y + NODE.height / 2 },
          ]),
          ...sheet.edges.flat(),
          ...sheet.labels.filter((label) => label !== null),
        ];
        expect(corners.every(({ x, y }) => x >= 0 && y >= 0 && x <= sheet.width && y <= sheet.height)).toBe(true);
        const [first] = given.nodes;
        const [moved] = sheet.nodes;
        const shift = { x: (moved?.x ?? 0) - (first?.x ?? 0), y: (moved?.y ?? 0) - (first?.y ?? 0) };
        expect(sheet.edges.flat()).toEqual(given.edges.flat().map(({ x, y }) => ({ x: x + shift.x, y: y + shift.y })));
      }),
    );
  });

  it('is empty for a graph without steps', () => {
    expect(fitSheet(layoutOf({ nodes: [], edges: [] }), NODE, [])).toMatchObject({ width: 0, height: 0 });
  });
});
