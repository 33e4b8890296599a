// Fits a sheet around a laid-out graph. The layout leaves room for nodes only: the points of edges
// that lead back and the labels beside edges may lie outside of it.
import type { Layout, Point } from './shape.ts';

const MARGIN = 16;
/** Place of a label's text relative to the point that it stands beside: on the same baseline. */
const LABEL_X = 4;
const LABEL_ASCENT = 12;
const LABEL_DESCENT = 4;
/** Width of the widest character of a label, so that the estimate is never too narrow. */
const CHAR_PX = 8;

export interface Sheet extends Layout {
  /** Start of the baseline of each edge's label; null for an edge without one. */
  labels: readonly (Point | null)[];
}

/** Returns true if a node lies over a label that starts at a point. */
const covers = (at: Point, node: { width: number; height: number }, label: Point, width: number): boolean =>
  label.x < at.x + node.width / 2 &&
  label.x + width > at.x - node.width / 2 &&
  label.y - LABEL_ASCENT < at.y + node.height / 2 &&
  label.y + LABEL_DESCENT > at.y - node.height / 2;

/**
 * Returns the layout on a sheet that holds all of it, moved so that no coordinate is negative.
 * @param node size of a node
 * @param labels text beside the middle of each edge; an empty one is not shown
 */
export function fitSheet(layout: Layout, node: { width: number; height: number }, labels: readonly string[]): Sheet {
  const at = layout.edges.map((points, edge): Point | null => {
    const middle = points[Math.floor(points.length / 2)];
    const label = labels[edge] ?? '';
    if (middle === undefined || label === '') return null;
    const right = { x: middle.x + LABEL_X, y: middle.y };
    // A node would cover the label of an edge that passes it closely.
    const covered = layout.nodes.some((place) => covers(place, node, right, label.length * CHAR_PX));
    return covered ? { x: middle.x - LABEL_X - label.length * CHAR_PX, y: middle.y } : right;
  });
  const corners = [
    ...layout.nodes.flatMap(({ x, y }) => [
      { x: x - node.width / 2, y: y - node.height / 2 },
      { x: x + node.width / 2, y: y + node.height / 2 },
    ]),
    ...layout.edges.flat(),
    ...at.flatMap((point, edge) =>
      point === null
        ? []
        : [
            { x: point.x, y: point.y - LABEL_ASCENT },
            { x: point.x + (labels[edge] ?? '').length * CHAR_PX, y: point.y + LABEL_DESCENT },
          ],
    ),
  ];
  const least = (axis: 'x' | 'y'): number => corners.reduce((min, point) => Math.min(min, point[axis]), Infinity);
  const most = (axis: 'x' | 'y'): number => corners.reduce((max, point) => Math.max(max, point[axis]), -Infinity);
  if (corners.length === 0) return { width: 0, height: 0, nodes: [], edges: [], labels: [] };
  const left = least('x') - MARGIN;
  const top = least('y') - MARGIN;
  const moved = ({ x, y }: Point): Point => ({ x: x - left, y: y - top });
  return {
    width: most('x') + MARGIN - left,
    height: most('y') + MARGIN - top,
    nodes: layout.nodes.map(moved),
    edges: layout.edges.map((points) => points.map(moved)),
    labels: at.map((point) => (point === null ? null : moved(point))),
  };
}
