// "Where it went": the time of the critical path by kind and name, with idle time apart, and the
// cost by model. The parts of the time add up to the duration of the trace.
import { type CriticalPath, IDLE } from './critical_path.ts';
import { kindOf, modelOf, nameOf, type Tree } from './tree.ts';
import { SHOWN_KINDS, type ShownKind } from './outline.ts';

export interface Part {
  kind: ShownKind | 'idle';
  /** Name of the spans, or the model; empty for idle time. */
  name: string;
  /** Milliseconds or USD. */
  amount: number;
  /** 0 to 1. */
  share: number;
  /** Number of spans in the part. */
  spans: number;
  /** The first of them; -1 for idle time. */
  first: number;
}

interface Sum {
  amount: number;
  spans: Set<number>;
  first: number;
}

/** @param key a number for each part: a key of text for each span would cost more than the sums */
function addTo(sums: Map<number, Sum>, key: number, span: number, amount: number): void {
  const sum = sums.get(key);
  if (sum === undefined) sums.set(key, { amount, spans: new Set([span]), first: span });
  else {
    sum.amount += amount;
    sum.spans.add(span);
  }
}

function partsOf(sums: Map<number, Sum>, describe: (first: number) => Pick<Part, 'kind' | 'name'>): Part[] {
  let total = 0;
  for (const { amount } of sums.values()) total += amount;
  return Array.from(sums.values(), ({ amount, spans, first }) => ({
    ...describe(first),
    amount,
    share: total === 0 ? 0 : amount / total,
    spans: first === IDLE ? 0 : spans.size,
    first,
  })).sort((a, b) => b.amount - a.amount || a.first - b.first);
}

/** Returns the parts of the time, largest first. */
export function timeParts(tree: Tree, path: CriticalPath): Part[] {
  const sums = new Map<number, Sum>();
  path.span.forEach((span, at) => {
    const key = span === IDLE ? -1 : ((tree.name[span] ?? -1) + 1) * SHOWN_KINDS.length + (tree.kind[span] ?? 0);
    addTo(sums, key, span, (path.to[at] ?? 0) - (path.from[at] ?? 0));
  });
  return partsOf(sums, (span) =>
    span === IDLE ? { kind: 'idle', name: '' } : { kind: kindOf(tree, span), name: nameOf(tree, span) },
  );
}

/** Returns the parts of the cost by model, largest first; spans with a cost and no model count by their name. */
export function costParts(tree: Tree): Part[] {
  const sums = new Map<number, Sum>();
  for (let i = 0; i < tree.size; i += 1) {
    const cost = tree.cost[i] ?? 0;
    if (cost <= 0) continue;
    const model = tree.model[i] ?? -1;
    // Models count up from 0, names down from -1; a span without a name is -1 itself.
    addTo(sums, model >= 0 ? model : -2 - (tree.name[i] ?? -1), i, cost);
  }
  return partsOf(sums, (span) => ({ kind: kindOf(tree, span), name: modelOf(tree, span) || nameOf(tree, span) }));
}
