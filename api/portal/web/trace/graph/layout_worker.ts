// The worker that lays out the graph of steps.
import dagre from '@dagrejs/dagre';
import type { GraphGiven, Layout } from './shape.ts';

function layOut({ nodes, edges }: GraphGiven): Layout {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: 'TB', nodesep: 24, ranksep: 40, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  nodes.forEach(({ width, height }, at) => graph.setNode(String(at), { width, height }));
  for (const { from, to } of edges) graph.setEdge(String(from), String(to));
  dagre.layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    nodes: nodes.map((_, at) => {
      const { x, y } = graph.node(String(at)) as { x: number; y: number };
      return { x, y };
    }),
    edges: edges.map(({ from, to }) => {
      const { points } = graph.edge(String(from), String(to)) as { points: { x: number; y: number }[] };
      return points;
    }),
  };
}

addEventListener('message', ({ data }: MessageEvent<GraphGiven>) => {
  postMessage(layOut(data));
});
