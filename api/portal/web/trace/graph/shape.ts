// Input and output of the layout of a graph, in pixels.

export interface GraphGiven {
  nodes: readonly { width: number; height: number }[];
  edges: readonly { from: number; to: number }[];
}

export interface Point {
  x: number;
  y: number;
}

export interface Layout {
  width: number;
  height: number;
  /** Centre of each node. */
  nodes: readonly Point[];
  /** Points of each edge. */
  edges: readonly (readonly Point[])[];
}
