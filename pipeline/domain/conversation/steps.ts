// Turns the model calls of a trace into one dialogue without repeats. In: calls in the order of
// their start, with their messages and answers, and the spans of tools. Out: for each call the
// earlier call that it continues, what changed since, its answer, and the results of its tool
// calls. Pure.
import { type Changes, changesBetween, commonStart } from './changes.ts';
import { answerKey, type Message } from './messages.ts';
import type { ToolCall } from './parts.ts';

/** A span in its place in the trace. */
export interface Placed {
  /** Number of the span, by which ancestors name it. */
  span: number;
  /** Numbers of its parents, the nearest first. */
  ancestors: readonly number[];
}

export interface ModelCall extends Placed {
  span_id: string;
  messages: Message[];
  response: string;
  tool_calls: ToolCall[];
}

export interface ToolRun extends Placed {
  span_id: string;
  /** Milliseconds since the epoch. */
  started_ms: number;
  name: string;
  /** Id of the tool call that it answers; empty if unknown. */
  call_id: string;
  input: string;
  output: string;
}

export interface StepCall extends ToolCall {
  /** null if no result is known. */
  result: string | null;
  /** The span of the tool; null if none is found. */
  run: ToolRun | null;
}

export interface Step {
  /** The call whose messages this one's are compared with; null if all are new. */
  base: ModelCall | null;
  changes: Changes;
  /** Positions of added messages that an earlier step shows already, with what they repeat. */
  repeats: ReadonlyMap<number, 'answer' | 'tool_result'>;
  calls: StepCall[];
}

export interface StepsInput<Call extends ModelCall> {
  /** The calls of the page, in the order of their start. */
  calls: readonly (Call & { started_ms: number })[];
  /** Calls before the page that those of the page may continue. */
  before: readonly ModelCall[];
  /** Tools that ran since the first call of the page, in the order of their start. */
  tools: readonly ToolRun[];
}

/** Returns one step for each call, in the same order. */
export function stepsOf<Call extends ModelCall>({ calls, before, tools }: StepsInput<Call>): Step[] {
  const runs = runsByCall(calls, tools);
  const earlier: ModelCall[] = [...before];
  const shown = { answers: new Set<string>(), results: new Set<string>() };
  const steps = calls.map((call, index): Step => {
    const base = baseOf(call, earlier);
    const changes = changesBetween(base?.messages ?? [], call.messages);
    const repeats = repeatsIn(call, changes, shown);
    const stepCalls = callsOf(call, resultsAfter(calls, index), runs[index] ?? []);
    earlier.push(call);
    if (call.response !== '' || call.tool_calls.length > 0)
      shown.answers.add(answerKey(call.response, call.tool_calls));
    for (const { id, result } of stepCalls) if (id !== null && result !== null) shown.results.add(id);
    return { base, changes, repeats, calls: stepCalls };
  });
  return steps;
}

/**
 * Returns the earlier call that a call continues: the one whose messages begin the same for
 * longest, then the nearest in the tree, then the newest. A call of another parent qualifies only
 * if more than the system messages is common, since many agents share those.
 */
export function baseOf(call: ModelCall, earlier: readonly ModelCall[]): ModelCall | null {
  const levels = new Map(call.ancestors.map((span, level) => [span, level]));
  const spoken = call.messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  let best: ModelCall | null = null;
  let [most, nearest] = [0, Infinity];
  for (const other of earlier.toReversed()) {
    const common = commonStart(other.messages, call.messages);
    if (common === 0 || common < most) continue;
    const level = levelOf(levels, other);
    const isNear = level === 0 || (spoken !== -1 && common > spoken);
    if (!isNear || (common === most && level >= nearest)) continue;
    [best, most, nearest] = [other, common, level];
  }
  return best;
}

/** Returns how many levels above a call its nearest parent is that another call has too. */
function levelOf(levels: ReadonlyMap<number, number>, other: Placed): number {
  let nearest = levels.get(other.span) ?? Infinity;
  for (const span of other.ancestors) nearest = Math.min(nearest, levels.get(span) ?? Infinity);
  return nearest;
}

function repeatsIn(
  call: ModelCall,
  { added }: Changes,
  shown: { answers: ReadonlySet<string>; results: ReadonlySet<string> },
): Map<number, 'answer' | 'tool_result'> {
  const repeats = new Map<number, 'answer' | 'tool_result'>();
  for (const position of added) {
    const message = call.messages[position];
    if (message === undefined) continue;
    if (message.role === 'assistant' && shown.answers.has(message.key)) repeats.set(position, 'answer');
    else if (message.role === 'tool' && shown.results.has(message.tool_call_id)) repeats.set(position, 'tool_result');
  }
  return repeats;
}

/** Maximum later calls in which the results of a call's tools are looked for. */
const LATER_CALLS_MAX = 50;

/** Returns the results that later calls were sent, by the id of the tool call. */
function resultsAfter(calls: readonly ModelCall[], index: number): (id: string) => string | null {
  return (id) => {
    for (const later of calls.slice(index + 1, index + 1 + LATER_CALLS_MAX)) {
      const found = later.messages.find((message) => message.role === 'tool' && message.tool_call_id === id);
      if (found !== undefined) return found.text;
    }
    return null;
  };
}

/** Returns the tool calls of a step, and after them the tools that ran without being named there. */
function callsOf(call: ModelCall, resultOf: (id: string) => string | null, runs: readonly ToolRun[]): StepCall[] {
  const left = new Set(runs);
  const claim = (fits: (run: ToolRun) => boolean): ToolRun | null => {
    for (const run of left) {
      if (!fits(run)) continue;
      left.delete(run);
      return run;
    }
    return null;
  };
  const named = call.tool_calls.map((asked): StepCall => {
    const run =
      (asked.id === null ? null : claim((one) => one.call_id === asked.id)) ??
      claim((one) => one.call_id === '' && one.name === asked.name);
    const sent = asked.id === null ? null : resultOf(asked.id);
    return { ...asked, result: sent ?? (run === null || run.output === '' ? null : run.output), run };
  });
  const others = [...left].map((run): StepCall => ({
    id: run.call_id === '' ? null : run.call_id,
    name: run.name,
    arguments: run.input,
    result: run.output === '' ? null : run.output,
    run,
  }));
  return [...named, ...others];
}

/** Returns the tools that ran for each call: each belongs to the newest call before it that is nearest in the tree. */
function runsByCall(calls: readonly (ModelCall & { started_ms: number })[], tools: readonly ToolRun[]): ToolRun[][] {
  const runs = calls.map((): ToolRun[] => []);
  const byId = new Map(calls.flatMap((call, index) => call.tool_calls.map(({ id }) => [id, index] as const)));
  for (const tool of tools) {
    const named = tool.call_id === '' ? undefined : byId.get(tool.call_id);
    const index = named ?? nearestBefore(calls, tool);
    if (index !== -1) runs[index]?.push(tool);
  }
  return runs;
}

function nearestBefore(calls: readonly (ModelCall & { started_ms: number })[], tool: ToolRun): number {
  const levels = new Map(tool.ancestors.map((span, level) => [span, level]));
  let best = { index: -1, level: Infinity };
  for (const [index, call] of calls.entries()) {
    if (call.started_ms > tool.started_ms) break;
    const level = levelOf(levels, call);
    if (level <= best.level) best = { index, level };
  }
  return best.index;
}
