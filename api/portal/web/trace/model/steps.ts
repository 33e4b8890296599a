// The graph of steps: spans without children, grouped by kind and name, and how often one step
// follows another in the order of their start.
import { hasFailed, isLeaf, type Tree } from './tree.ts';

/** A graph of more steps than this is a table only: it would be no picture. */
export const STEPS_MAX = 120;

export interface StepNode {
  kind: number;
  name: number;
  /** Spans of the step, in order of their start. */
  spans: readonly number[];
  failed: number;
  /** Sum of their durations, milliseconds. */
  busy: number;
}

export interface StepEdge {
  from: number;
  to: number;
  count: number;
}

export interface Steps {
  nodes: readonly StepNode[];
  edges: readonly StepEdge[];
}

export function stepsOf(tree: Tree): Steps {
  const leaves: number[] = [];
  for (let i = 0; i < tree.size; i += 1) if (isLeaf(tree, i)) leaves.push(i);
  leaves.sort((a, b) => (tree.start[a] ?? 0) - (tree.start[b] ?? 0) || a - b);
  const nodes: { kind: number; name: number; spans: number[]; failed: number; busy: number }[] = [];
  const indexOf = new Map<string, number>();
  const edges = new Map<string, StepEdge>();
  let before = -1;
  for (const i of leaves) {
    const kind = tree.kind[i] ?? 0;
    const name = tree.name[i] ?? -1;
    const key = `${kind} ${name}`;
    const at = indexOf.get(key) ?? nodes.push({ kind, name, spans: [], failed: 0, busy: 0 }) - 1;
    indexOf.set(key, at);
    const node = nodes[at];
    if (node === undefined) continue;
    node.spans.push(i);
    node.busy += (tree.end[i] ?? 0) - (tree.start[i] ?? 0);
    if (hasFailed(tree, i)) node.failed += 1;
    if (before >= 0) {
      const edge = edges.get(`${before} ${at}`);
      if (edge === undefined) edges.set(`${before} ${at}`, { from: before, to: at, count: 1 });
      else edge.count += 1;
    }
    before = at;
  }
  return { nodes, edges: [...edges.values()] };
}
