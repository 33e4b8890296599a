// Outlines for the unit tests of the trace screen: short notation for single cases, and arbitrary
// ones for properties.
import fc from 'fast-check';
import type { Outline, OutlineColumns } from '../../../api/portal/web/trace/model/outline.ts';
import { buildTree, type Tree } from '../../../api/portal/web/trace/model/tree.ts';

export interface SpanGiven {
  /** Name, which is also the id. */
  name: string;
  id?: string;
  parent?: number;
  kind?: string;
  model?: string;
  outcome?: string;
  start?: number;
  duration?: number;
  cost?: number;
  tokens?: [number, number];
  flags?: number;
  error?: string;
}

const indexIn = (list: string[], value: string): number => {
  const at = list.indexOf(value);
  return at >= 0 ? at : list.push(value) - 1;
};

export function outlineOf(given: readonly SpanGiven[]): Outline {
  const names: string[] = [];
  const models: string[] = [];
  const spans = {
    span_id: given.map(({ id, name }) => id ?? name),
    parent: given.map(({ parent }) => parent ?? -1),
    name: given.map(({ name }) => indexIn(names, name)),
    kind: given.map(({ kind }) => kind ?? 'event'),
    model: given.map(({ model }) => (model === undefined ? -1 : indexIn(models, model))),
    outcome: given.map(({ outcome }) => outcome ?? 'success'),
    start_ms: given.map(({ start }) => start ?? 0),
    duration_ms: given.map(({ duration }) => duration ?? 0),
    first_token_ms: given.map(() => -1),
    input_tokens: given.map(({ tokens }) => tokens?.[0] ?? 0),
    output_tokens: given.map(({ tokens }) => tokens?.[1] ?? 0),
    cost_usd: given.map(({ cost }) => cost ?? 0),
    flags: given.map(({ flags }) => flags ?? 0),
  } satisfies OutlineColumns;
  const errors = given.flatMap(({ error }, i) => (error === undefined ? [] : [{ i, message: error }]));
  return {
    trace: {
      trace_id: 'trc_1',
      root_span_name: given[0]?.name ?? null,
      agent_id: null,
      outcome: 'success',
      duration_ms: 0,
      input_tokens: 0,
      output_tokens: 0,
      cost_usd: 0,
      started_at: '2026-11-01T00:00:00.000Z',
      ended_at: '2026-11-01T00:00:00.000Z',
      tags: [],
      span_count: given.length,
      session_id: null,
      user_id: null,
    },
    complete: true,
    sampled: true,
    names,
    models,
    errors,
    scores: [],
    spans,
  };
}

export const treeOf = (given: readonly SpanGiven[]): Tree => buildTree(outlineOf(given));

const spanGiven = fc.record({
  name: fc.constantFrom('plan', 'search', 'answer', 'book'),
  kind: fc.constantFrom('llm', 'tool', 'event', 'app'),
  outcome: fc.constantFrom('success', 'success', 'error', 'timeout'),
  start: fc.integer({ min: 0, max: 200 }),
  duration: fc.integer({ min: 0, max: 100 }),
  cost: fc.integer({ min: 0, max: 1000 }),
  above: fc.nat(),
});

/** Outlines whose spans have any parent, also one that is missing, later, themselves or part of a circle. */
export const anyOutline = fc
  .array(spanGiven, { maxLength: 60 })
  .map((list) =>
    outlineOf(list.map(({ above, ...span }, i) => ({ ...span, id: `s${i}`, parent: (above % (list.length + 2)) - 1 }))),
  );
