// The critical path of a trace: at each instant the one span that the end of the trace waited for.
// It is found from the last end backwards. At an instant, the child that ended last holds the time
// down to its own start; time that no child holds belongs to the parent, and is idle where no span
// works. The stretches cover the trace exactly, so their lengths add up to it.
import { idleGaps } from './idle.ts';
import { subtreeRanges } from './sums.ts';
import { childrenOf, isWork, type Tree } from './tree.ts';

export const IDLE = -1;

/** Stretches in order of time; each begins where the one before ends. */
export interface CriticalPath {
  /** Span of each stretch; IDLE where nothing runs. */
  span: Int32Array;
  from: Float64Array;
  to: Float64Array;
  /** 1 for spans that hold a stretch, and for their ancestors. */
  isOn: Uint8Array;
}

interface Stretches {
  span: number[];
  from: number[];
  to: number[];
}

interface Frame {
  span: number;
  /** Children by their end, latest first. */
  children: number[];
  next: number;
  /** The time after this instant is already assigned. */
  cursor: number;
  floor: number;
}

export function criticalPath(tree: Tree): CriticalPath {
  const owned = ownedStretches(tree);
  const stretches = splitIdle(tree, owned);
  const isOn = new Uint8Array(tree.size);
  for (const span of stretches.span) {
    for (let i = span; i >= 0 && isOn[i] === 0; i = tree.parent[i] ?? -1) isOn[i] = 1;
  }
  return {
    span: Int32Array.from(stretches.span),
    from: Float64Array.from(stretches.from),
    to: Float64Array.from(stretches.to),
    isOn,
  };
}

/** Returns the stretches from the latest to the earliest, each with the span that holds it. */
function ownedStretches(tree: Tree): Stretches {
  const stretches: Stretches = { span: [], from: [], to: [] };
  if (tree.size === 0 || tree.to <= tree.from) return stretches;
  const range = subtreeRanges(tree);
  const working = workingByEnd(tree);
  const frameOf = (span: number, cursor: number, floor: number): Frame => ({
    span,
    children: childrenOf(tree, span).sort(
      (a, b) => (range.to[b] ?? 0) - (range.to[a] ?? 0) || (range.from[a] ?? 0) - (range.from[b] ?? 0) || a - b,
    ),
    next: 0,
    cursor,
    floor,
  });
  const stack: Frame[] = [frameOf(-1, tree.to, tree.from)];
  for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
    const child = frame.children[frame.next];
    if (child === undefined || frame.cursor <= frame.floor) {
      pushOwn(tree, working, stretches, frame, frame.floor);
      stack.pop();
      continue;
    }
    frame.next += 1;
    const from = Math.max(range.from[child] ?? 0, frame.floor);
    // A child that begins after the cursor ran beside one that ended later.
    if (from >= frame.cursor) continue;
    const to = Math.min(range.to[child] ?? 0, frame.cursor);
    if (to <= from) continue;
    pushOwn(tree, working, stretches, frame, to);
    frame.cursor = from;
    stack.push(frameOf(child, to, from));
  }
  return stretches;
}

function append(stretches: Stretches, span: number, from: number, to: number): void {
  if (to <= from) return;
  stretches.span.push(span);
  stretches.from.push(from);
  stretches.to.push(to);
}

/** Appends the time from an instant to the cursor of a frame: its span's own where the span runs, else of a working span elsewhere. */
function pushOwn(tree: Tree, working: Working, stretches: Stretches, frame: Frame, from: number): void {
  const { span, cursor: to } = frame;
  const start = span < 0 ? to : Math.min(Math.max(tree.start[span] ?? 0, from), to);
  const end = span < 0 ? to : Math.min(Math.max(tree.end[span] ?? 0, start), to);
  pushHole(tree, working, stretches, end, to);
  append(stretches, span, start, end);
  pushHole(tree, working, stretches, from, start);
}

/** Working spans, the latest end first, and the first that may still run before the time that is assigned. */
interface Working {
  spans: number[];
  next: number;
}

function workingByEnd(tree: Tree): Working {
  const spans: number[] = [];
  for (let i = 0; i < tree.size; i += 1) if (isWork(tree, i)) spans.push(i);
  return { spans: spans.sort((a, b) => (tree.end[b] ?? 0) - (tree.end[a] ?? 0) || a - b), next: 0 };
}

/**
 * Appends a stretch in which the span that holds it does not run: a child outlived its parent. The
 * time goes to the spans that work then, the one that ended last first; it is idle where none runs.
 * Holes come in descending order of time, so a span that starts after one is never needed again.
 */
function pushHole(tree: Tree, working: Working, stretches: Stretches, from: number, to: number): void {
  let cursor = to;
  while (cursor > from) {
    let holder = working.spans[working.next];
    while (holder !== undefined && (tree.start[holder] ?? 0) >= cursor) {
      working.next += 1;
      holder = working.spans[working.next];
    }
    const end = holder === undefined ? from : Math.min(Math.max(tree.end[holder] ?? 0, from), cursor);
    append(stretches, IDLE, end, cursor);
    const start = holder === undefined ? from : Math.min(Math.max(tree.start[holder] ?? 0, from), end);
    append(stretches, holder ?? IDLE, start, end);
    cursor = start;
  }
}

/** Cuts the stretches of spans that do not work themselves by the idle gaps, and puts all in order of time. */
function splitIdle(tree: Tree, owned: Stretches): Stretches {
  const gaps = idleGaps(tree);
  const result: Stretches = { span: [], from: [], to: [] };
  const append = (span: number, from: number, to: number): void => {
    if (to <= from) return;
    const last = result.span.length - 1;
    if (result.span[last] === span && result.to[last] === from) result.to[last] = to;
    else {
      result.span.push(span);
      result.from.push(from);
      result.to.push(to);
    }
  };
  let gap = 0;
  for (let at = owned.span.length - 1; at >= 0; at -= 1) {
    const span = owned.span[at] ?? IDLE;
    const to = owned.to[at] ?? 0;
    let from = owned.from[at] ?? 0;
    if (span !== IDLE && !isWork(tree, span)) {
      while (gap < gaps.from.length && (gaps.to[gap] ?? 0) <= from) gap += 1;
      for (let g = gap; g < gaps.from.length && (gaps.from[g] ?? 0) < to; g += 1) {
        const low = Math.max(gaps.from[g] ?? 0, from);
        const high = Math.min(gaps.to[g] ?? 0, to);
        append(span, from, low);
        append(IDLE, low, high);
        from = Math.max(from, high);
      }
    }
    append(span, from, to);
  }
  return result;
}
