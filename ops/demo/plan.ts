// Timeline of a run: turns and tool calls with times and tokens, which the messages themselves
// lack. Takes a run and a token counter; returns steps with times relative to the run's start,
// always the same for the same run. Pure.
import type { Message, Run, ToolCall } from './runs.ts';

/** Returns the number of tokens of a text. */
export type CountTokens = (text: string) => number;

/** Assistant turn: the model's input (all messages before it) and its answer. */
export interface Turn {
  kind: 'turn';
  /** Index of the assistant message in the run. */
  at: number;
  offset_ms: number;
  duration_ms: number;
  prompt_tokens: number;
  completion_tokens: number;
}

/** Tool result, under the turn that called the tool. */
export interface ToolUse {
  kind: 'tool';
  /** Index of the tool message in the run. */
  at: number;
  /** Index of the assistant message that called the tool; -1 if there is none. */
  turn_at: number;
  name: string;
  /** Arguments as the model wrote them; empty if the call was not found. */
  input: string;
  offset_ms: number;
  duration_ms: number;
}

export type Step = Turn | ToolUse;

export interface RunPlan {
  steps: Step[];
  duration_ms: number;
}

/** Tokens that a chat format spends on each message, and before the answer. */
const TOKENS_PER_MESSAGE = 4;
const TOKENS_BEFORE_ANSWER = 3;
/** Tokens that a chat format spends on each tool call. */
const TOKENS_PER_CALL = 8;

/**
 * Time of a model call: its first token, then its pace; a prompt is read much faster than an answer
 * is written.
 */
const turnMs = (promptTokens: number, completionTokens: number): number =>
  Math.round(350 + promptTokens * 0.06 + completionTokens * 14);
/** Time of a tool call: a round trip, and some time for what it returns. */
const toolMs = (result: string): number => Math.round(35 + Math.min(900, result.length * 0.12));
/** Time in which a person reads the answer and types. */
const personMs = (text: string): number => Math.round(900 + Math.min(12_000, text.length * 25));

function completionTokens(message: Message, count: CountTokens): number {
  const calls = message.tool_calls ?? [];
  return (
    count(message.content ?? '') +
    calls.reduce((sum, call) => sum + TOKENS_PER_CALL + count(call.function.name) + count(call.function.arguments), 0)
  );
}

/**
 * Places the steps of a run in time, one after the other; tool calls of the same turn run in
 * parallel.
 */
export function planRun({ traj }: Run, count: CountTokens): RunPlan {
  const steps: Step[] = [];
  const callers = new Map<string, { at: number; call: ToolCall }>();
  let clock = 0;
  let promptTokens = TOKENS_BEFORE_ANSWER;
  /** Time at which the tools of the newest turn were called; they run in parallel. */
  let calledAt = 0;
  for (const [at, message] of traj.entries()) {
    const tokens = completionTokens(message, count);
    if (message.role === 'assistant') {
      const duration = turnMs(promptTokens, tokens);
      steps.push({
        kind: 'turn',
        at,
        offset_ms: clock,
        duration_ms: duration,
        prompt_tokens: promptTokens,
        completion_tokens: tokens,
      });
      clock += duration;
      calledAt = clock;
      for (const call of message.tool_calls ?? []) callers.set(call.id, { at, call });
    } else if (message.role === 'tool') {
      const caller = callers.get(message.tool_call_id ?? '');
      const duration = toolMs(message.content ?? '');
      const name = message.name ?? caller?.call.function.name ?? 'tool';
      const input = caller?.call.function.arguments ?? '';
      steps.push({
        kind: 'tool',
        at,
        turn_at: caller?.at ?? -1,
        name,
        input,
        offset_ms: calledAt,
        duration_ms: duration,
      });
      clock = Math.max(clock, calledAt + duration);
    } else if (message.role === 'user' && at > 1) {
      clock += personMs(message.content ?? '');
    }
    promptTokens += TOKENS_PER_MESSAGE + tokens;
  }
  return { steps, duration_ms: clock };
}
