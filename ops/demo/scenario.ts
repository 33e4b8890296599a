// Runs that are described as a tree of steps rather than as a conversation. Takes a scenario, its
// end and the tag of the load; returns the same kind of events as a run of a file. The same
// scenario at the same time gives the same events, byte for byte. Pure.
import { hex16 } from '../../pipeline/domain/traces/ids.ts';
import { type DemoEvent, DEMO_REALM, DEMO_TAG, type RunEvents } from './events.ts';

/** One span of a scenario. Steps below it follow one another, or all start with it if `parallel`. */
export interface Step {
  kind: 'llm' | 'tool' | 'event';
  name: string;
  /** Time of the step itself, before its first child, milliseconds. */
  own_ms: number;
  /** Pause between the end of the step before and the start of this one, milliseconds. */
  wait_ms?: number;
  outcome?: 'success' | 'error' | 'timeout';
  input?: unknown;
  output?: unknown;
  /** Tokens of a model call, input and output. */
  tokens?: readonly [number, number];
  model?: string;
  /** Version of a prompt that a model call was made with, and its variables. */
  prompt?: { name: string; version: string; variables: Readonly<Record<string, string>> };
  /** Outcomes that the step achieved, by name, for the cost of an outcome. */
  outcomes?: Readonly<Record<string, number>>;
  parallel?: boolean;
  steps?: readonly Step[];
}

export interface Scenario {
  agent: string;
  department: string;
  user_id: string;
  session_id: string;
  tags: readonly string[];
  root: Step;
}

/** Maximum events of a batch of the format custom. */
const BATCH_MAX = 1000;

interface Placed {
  step: Step;
  /** Path of indexes from the root, which makes the span's id. */
  path: string;
  parent: string | null;
  start_ms: number;
  duration_ms: number;
}

/** Returns the duration of a step with everything below it, milliseconds. */
export function durationOf({ own_ms, parallel, steps = [] }: Step): number {
  const spans = steps.map((step) => (step.wait_ms ?? 0) + durationOf(step));
  return own_ms + (parallel === true ? Math.max(0, ...spans) : spans.reduce((sum, span) => sum + span, 0));
}

/** Returns every step with its time relative to the start of the run, parents first. */
function place(step: Step, path: string, parent: string | null, start_ms: number): Placed[] {
  const placed: Placed[] = [{ step, path, parent, start_ms, duration_ms: durationOf(step) }];
  let at = start_ms + step.own_ms;
  for (const [index, child] of (step.steps ?? []).entries()) {
    const start = at + (child.wait_ms ?? 0);
    placed.push(...place(child, `${path}.${index}`, path, start));
    if (step.parallel !== true) at = start + durationOf(child);
  }
  return placed;
}

/**
 * Returns the events of a scenario.
 * @param endedAt milliseconds since the epoch; part of the trace's id
 * @param loadTag tag that all events of one load share
 */
export function scenarioEvents(scenario: Scenario, endedAt: number, loadTag: string): RunEvents {
  const startedAt = endedAt - durationOf(scenario.root);
  const trace_id = `trc_${hex16(`${JSON.stringify(scenario)}@${new Date(endedAt).toISOString()}`)}`;
  const placed = place(scenario.root, '0', null, 0);
  const spanId = (path: string): string => `spn_${hex16(`${trace_id}/${path}`)}`;
  // Children come before their parents, because an instrumented agent sends a span when it ends.
  const events = placed.toReversed().map(({ step, path, parent, start_ms, duration_ms }) => ({
    trace_id,
    span_id: spanId(path),
    ...(parent === null ? {} : { parent_span_id: spanId(parent) }),
    name: step.name,
    outcome: step.outcome ?? 'success',
    started_at: new Date(startedAt + start_ms).toISOString(),
    ended_at: new Date(startedAt + start_ms + duration_ms).toISOString(),
    duration_ms,
    tags: [DEMO_TAG, ...scenario.tags, loadTag],
    attributes: attributesOf(scenario, step),
  }));
  const calls = placed.filter(({ step }) => step.kind === 'llm');
  const tokens = (side: 0 | 1): number => calls.reduce((sum, { step }) => sum + (step.tokens?.[side] ?? 0), 0);
  return {
    trace_id,
    name: scenario.root.name,
    outcome: scenario.root.outcome ?? 'success',
    asked: typeof scenario.root.input === 'string' ? scenario.root.input : scenario.root.name,
    events: inBatches(events),
    spans: placed.length,
    llm_spans: calls.length,
    tool_spans: placed.filter(({ step }) => step.kind === 'tool').length,
    input_tokens: tokens(0),
    output_tokens: tokens(1),
  };
}

function attributesOf({ agent, department, user_id, session_id }: Scenario, step: Step): Record<string, unknown> {
  return {
    agent_id: agent,
    department,
    realm: DEMO_REALM,
    user_id,
    session_id,
    span_kind: step.kind,
    ...(step.input === undefined ? {} : step.kind === 'llm' ? { messages: step.input } : { input: step.input }),
    ...(step.output === undefined ? {} : { output: step.output }),
    ...(step.model === undefined ? {} : { model: step.model }),
    ...(step.prompt === undefined
      ? {}
      : {
          prompt_name: step.prompt.name,
          prompt_version: step.prompt.version,
          prompt_variables: step.prompt.variables,
        }),
    ...(step.outcomes === undefined ? {} : { outcomes: step.outcomes }),
    ...(step.tokens === undefined ? {} : { usage: { input_tokens: step.tokens[0], output_tokens: step.tokens[1] } }),
  };
}

function inBatches(events: readonly Record<string, unknown>[]): DemoEvent[] {
  const batches: DemoEvent[] = [];
  for (let at = 0; at < events.length; at += BATCH_MAX)
    batches.push({ format: 'custom', body: { events: events.slice(at, at + BATCH_MAX) } });
  return batches;
}
