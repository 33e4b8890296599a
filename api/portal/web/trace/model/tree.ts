// The tree of a trace in typed arrays: one entry a span, parents before children, the subtree of a
// span in one stretch. Every later calculation is a loop over these arrays; none of them recurses,
// so a trace of 50,000 spans in one chain is as safe as a flat one.
import { hasSpanFlag } from '../../../../../pipeline/domain/traces/span_flags.ts';
import { KINDS, OUTCOMES, SHOWN_KINDS, type Outline } from './outline.ts';

const JUDGE = SHOWN_KINDS.indexOf('judge');
const LLM = KINDS.indexOf('llm');
const EVENT = KINDS.indexOf('event');

export interface Tree {
  readonly size: number;
  readonly names: readonly string[];
  readonly models: readonly string[];
  readonly spanId: readonly string[];
  /** Index of a span by its id; the first span where an id occurs twice. */
  readonly indexOf: ReadonlyMap<string, number>;
  readonly parent: Int32Array;
  /** Index after the last span of the subtree. */
  readonly subtreeEnd: Int32Array;
  /** Number of ancestors. */
  readonly depth: Int32Array;
  readonly name: Int32Array;
  readonly model: Int32Array;
  /** Index in SHOWN_KINDS. */
  readonly kind: Uint8Array;
  /** Index in OUTCOMES. */
  readonly outcome: Uint8Array;
  /** Milliseconds from the start of the trace. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** Milliseconds from the start of a span to its first token; -1 if unknown. */
  readonly firstToken: Float64Array;
  readonly inputTokens: Float64Array;
  readonly outputTokens: Float64Array;
  readonly cost: Float64Array;
  readonly flags: Uint16Array;
  readonly errors: ReadonlyMap<number, string>;
  /** Earliest start and latest end of all spans. */
  readonly from: number;
  readonly to: number;
}

export const isLeaf = (tree: Tree, i: number): boolean => (tree.subtreeEnd[i] ?? 0) === i + 1;
/**
 * Returns whether a span works itself while it runs: spans without children, and model calls, which
 * wait for the model also where tools that they started are recorded below them.
 */
export const isWork = (tree: Tree, i: number): boolean =>
  isLeaf(tree, i) || tree.kind[i] === LLM || tree.kind[i] === JUDGE;
export const hasFailed = (tree: Tree, i: number): boolean => tree.outcome[i] !== 0;

/** Returns the children of a span in their order; of the whole trace for -1: its roots. */
export function childrenOf(tree: Tree, parent: number): number[] {
  const end = parent < 0 ? tree.size : (tree.subtreeEnd[parent] ?? 0);
  const children: number[] = [];
  for (let i = parent + 1; i < end; i = tree.subtreeEnd[i] ?? end) children.push(i);
  return children;
}

interface Links {
  first: Int32Array;
  next: Int32Array;
  roots: number[];
}

/**
 * Links siblings in order of their start. A parent that is not in the outline, or is the span
 * itself, counts as none. An outline usually has siblings in order, so the sort is left out then.
 */
function linkSiblings(parent: readonly number[], start: readonly number[]): Links {
  const inOrder = new Uint32Array(parent.length);
  for (let i = 0; i < inOrder.length; i += 1) inOrder[i] = i;
  const given = linkInOrder(parent, inOrder);
  const follows = (a: number, b: number): boolean => (start[a] ?? 0) <= (start[b] ?? 0);
  const isSorted =
    given.next.every((next, i) => next < 0 || follows(i, next)) &&
    given.roots.every((root, at) => at === 0 || follows(given.roots[at - 1] ?? 0, root));
  if (isSorted) return given;
  const byStart = inOrder.sort((a, b) => (start[a] ?? 0) - (start[b] ?? 0) || a - b);
  return linkInOrder(parent, byStart);
}

function linkInOrder(parent: readonly number[], order: Uint32Array): Links {
  const size = parent.length;
  const first = new Int32Array(size).fill(-1);
  const next = new Int32Array(size).fill(-1);
  const roots: number[] = [];
  // Each span goes before the siblings that are linked already, so the last of the order comes first here.
  for (let at = size - 1; at >= 0; at -= 1) {
    const i = order[at] ?? 0;
    const up = parent[i] ?? -1;
    if (up < 0 || up >= size || up === i) roots.push(i);
    else {
      next[i] = first[up] ?? -1;
      first[up] = i;
    }
  }
  return { first, next, roots: roots.reverse() };
}

interface Order {
  /** Position in the outline of each span of the tree. */
  source: Int32Array;
  parent: Int32Array;
  depth: Int32Array;
}

/** Orders the spans depth first. Spans whose parents form a circle are shown from the first of them. */
function orderDepthFirst(parent: readonly number[], start: readonly number[]): Order {
  const size = parent.length;
  const { first, next, roots } = linkSiblings(parent, start);
  const order: Order = {
    source: new Int32Array(size),
    parent: new Int32Array(size).fill(-1),
    depth: new Int32Array(size),
  };
  const place = new Int32Array(size).fill(-1);
  let count = 0;
  const stack: number[] = [];
  const visit = (root: number): void => {
    stack.push(root);
    for (let i = stack.pop(); i !== undefined; i = stack.pop()) {
      if (place[i] !== -1) continue;
      const up = i === root ? -1 : (place[parent[i] ?? -1] ?? -1);
      place[i] = count;
      order.source[count] = i;
      order.parent[count] = up;
      order.depth[count] = up < 0 ? 0 : (order.depth[up] ?? 0) + 1;
      count += 1;
      const from = stack.length;
      for (let child = first[i] ?? -1; child >= 0; child = next[child] ?? -1) stack.push(child);
      reverseFrom(stack, from);
    }
  };
  for (const root of roots) visit(root);
  for (let i = 0; count < size && i < size; i += 1) if (place[i] === -1) visit(i);
  return order;
}

function reverseFrom(list: number[], from: number): void {
  for (let low = from, high = list.length - 1; low < high; low += 1, high -= 1) {
    const held = list[low] ?? 0;
    list[low] = list[high] ?? 0;
    list[high] = held;
  }
}

function subtreeEnds(parent: Int32Array): Int32Array {
  const ends = new Int32Array(parent.length);
  for (let i = 0; i < ends.length; i += 1) ends[i] = i + 1;
  for (let i = parent.length - 1; i >= 0; i -= 1) {
    const up = parent[i] ?? -1;
    if (up >= 0) ends[up] = Math.max(ends[up] ?? 0, ends[i] ?? 0);
  }
  return ends;
}

function shownKind(kind: string, flags: number): number {
  const code = KINDS.indexOf(kind as (typeof KINDS)[number]);
  if (code === LLM && hasSpanFlag(flags, 'judge_call')) return JUDGE;
  return code < 0 ? EVENT : code;
}

/** Fills a column with a value for each span. `from` of typed arrays goes through an iterator, which takes several times as long. */
function filled<Column extends Int32Array | Float64Array | Uint8Array | Uint16Array>(
  column: Column,
  source: Int32Array,
  valueOf: (span: number) => number,
): Column {
  for (let at = 0; at < source.length; at += 1) column[at] = valueOf(source[at] ?? 0);
  return column;
}

/** Builds the tree of an outline in linear time, or in the time of one sort where its spans are not in order. */
export function buildTree(outline: Outline): Tree {
  const { spans } = outline;
  const { source, parent, depth } = orderDepthFirst(spans.parent, spans.start_ms);
  const size = source.length;
  const spanId = new Array<string>(size);
  const indexOf = new Map<string, number>();
  const place = new Int32Array(size);
  const outcomes = new Map<string, number>(OUTCOMES.map((outcome, code) => [outcome, code]));
  const start = new Float64Array(size);
  const end = new Float64Array(size);
  let [from, to] = [Infinity, -Infinity];
  for (let at = size - 1; at >= 0; at -= 1) {
    const i = source[at] ?? 0;
    const id = spans.span_id[i] ?? '';
    const begun = spans.start_ms[i] ?? 0;
    const ended = begun + Math.max(0, spans.duration_ms[i] ?? 0);
    spanId[at] = id;
    indexOf.set(id, at);
    place[i] = at;
    start[at] = begun;
    end[at] = ended;
    if (begun < from) from = begun;
    if (ended > to) to = ended;
  }
  const floats = (column: readonly number[], absent: number) =>
    filled(new Float64Array(size), source, (i) => column[i] ?? absent);
  const codes = (column: readonly number[]) => filled(new Int32Array(size), source, (i) => column[i] ?? -1);
  return {
    size,
    names: outline.names,
    models: outline.models,
    spanId,
    indexOf,
    parent,
    depth,
    subtreeEnd: subtreeEnds(parent),
    name: codes(spans.name),
    model: codes(spans.model),
    kind: filled(new Uint8Array(size), source, (i) => shownKind(spans.kind[i] ?? '', spans.flags[i] ?? 0)),
    outcome: filled(new Uint8Array(size), source, (i) => outcomes.get(spans.outcome[i] ?? '') ?? 0),
    start,
    end,
    firstToken: floats(spans.first_token_ms, -1),
    inputTokens: floats(spans.input_tokens, 0),
    outputTokens: floats(spans.output_tokens, 0),
    cost: floats(spans.cost_usd, 0),
    flags: filled(new Uint16Array(size), source, (i) => spans.flags[i] ?? 0),
    errors: new Map(outline.errors.map(({ i, message }) => [place[i] ?? -1, message])),
    from: size === 0 ? 0 : from,
    to: size === 0 ? 0 : to,
  };
}

export const nameOf = (tree: Tree, i: number): string => tree.names[tree.name[i] ?? -1] ?? '';
export const modelOf = (tree: Tree, i: number): string => tree.models[tree.model[i] ?? -1] ?? '';
export const kindOf = (tree: Tree, i: number) => SHOWN_KINDS[tree.kind[i] ?? EVENT] ?? 'event';
export const outcomeOf = (tree: Tree, i: number) => OUTCOMES[tree.outcome[i] ?? 0] ?? 'success';
