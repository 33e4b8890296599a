// Events of one run as an instrumented agent would have sent them: a trace of model calls, with
// tool calls below the turn that made them, and a root that spans the whole. Takes a run, its plan
// and its start; returns request bodies in the order of sending. The same run at the same time
// gives the same events, byte for byte, so a service that has them already adds nothing. Pure.
import type { Message, Run } from './runs.ts';
import { agentOf } from './runs.ts';
import type { RunPlan, ToolUse, Turn } from './plan.ts';
import { hex16 } from '../../pipeline/domain/traces/ids.ts';

export interface DemoEvent {
  format: 'chatcompletion' | 'custom';
  body: Record<string, unknown>;
}

/** Events of one run, and what the service must show of them. */
export interface RunEvents {
  trace_id: string;
  name: string;
  outcome: Outcome;
  /** Request of the user at the start of the run. */
  asked: string;
  /** Requests in the order of sending; a body may be a batch. */
  events: DemoEvent[];
  spans: number;
  llm_spans: number;
  tool_spans: number;
  input_tokens: number;
  output_tokens: number;
}

type Outcome = 'success' | 'error' | 'timeout';

export const DEFAULT_MODEL = 'gpt-4o';
const DEFAULT_DEPARTMENT = 'customer-service';
export const DEMO_REALM = 'demo';
/** Tag of every event of every demonstration. */
export const DEMO_TAG = 'demo';

const iso = (ms: number): string => new Date(ms).toISOString();

/** Returns how a run ended: its own outcome if it has one, else by its reward. */
export function outcomeOf({ reward, info }: Run): Outcome {
  return info.outcome ?? (reward > 0 ? 'success' : 'error');
}

/**
 * Returns the failure of a tool's answer, which by convention begins with the word; null for
 * success.
 */
function toolFailure(content: string): 'error' | 'timeout' | null {
  if (/^(error|traceback)\b/i.test(content)) return 'error';
  return /^(timeout|timed out)\b/i.test(content) ? 'timeout' : null;
}

interface Frame {
  run: Run;
  trace_id: string;
  started_at: number;
  outcome: Outcome;
  /** Attributes of all events of the run. */
  shared: Record<string, unknown>;
  tags: string[];
}

const spanId = (frame: Frame, part: string): string => `spn_${hex16(`${frame.trace_id}/${part}`)}`;

/**
 * Returns the events of a run.
 * @param startedAt milliseconds since the epoch; part of the trace's id
 * @param loadTag tag that all events of one load share
 */
export function runEvents(run: Run, plan: RunPlan, startedAt: number, loadTag: string): RunEvents {
  const agent = agentOf(run);
  const { info } = run;
  const frame: Frame = {
    run,
    trace_id: `trc_${hex16(`${JSON.stringify(run)}@${iso(startedAt)}`)}`,
    started_at: startedAt,
    outcome: outcomeOf(run),
    shared: {
      agent_id: agent,
      session_id: `session_${run.task_id}_${run.trial}`,
      user_id: info.user_id ?? info.task?.user_id ?? 'user_unknown',
      department: info.department ?? DEFAULT_DEPARTMENT,
      realm: DEMO_REALM,
    },
    tags: [DEMO_TAG, ...(info.tags ?? []), loadTag],
  };
  const name = `${agent} task ${run.task_id} trial ${run.trial}`;
  const turns = plan.steps.filter((step) => step.kind === 'turn');
  const steps = plan.steps.map((step) =>
    step.kind === 'turn' ? turnEvent(frame, step, turns.indexOf(step) + 1) : toolEvent(frame, step),
  );
  return {
    trace_id: frame.trace_id,
    name,
    outcome: frame.outcome,
    asked: askedOf(run),
    // The root comes last, because an instrumented agent sends a span when it ends.
    events: [...steps, rootEvent(frame, plan, name)],
    spans: steps.length + 1,
    llm_spans: turns.length,
    tool_spans: plan.steps.length - turns.length,
    input_tokens: turns.reduce((sum, turn) => sum + turn.prompt_tokens, 0),
    output_tokens: turns.reduce((sum, turn) => sum + turn.completion_tokens, 0),
  };
}

function times(frame: Frame, step: { offset_ms: number; duration_ms: number }): Record<string, unknown> {
  const start = frame.started_at + step.offset_ms;
  return { duration_ms: step.duration_ms, started_at: iso(start), ended_at: iso(start + step.duration_ms) };
}

function turnEvent(frame: Frame, turn: Turn, number: number): DemoEvent {
  const { traj, info } = frame.run;
  const answer = traj[turn.at];
  const model = info.model ?? DEFAULT_MODEL;
  const span = spanId(frame, String(turn.at));
  return {
    format: 'chatcompletion',
    body: {
      trace_id: frame.trace_id,
      span_id: span,
      parent_span_id: spanId(frame, 'root'),
      request: { model, messages: traj.slice(0, turn.at), temperature: 0 },
      response: {
        id: `chatcmpl-${span.slice(4)}`,
        model,
        choices: [
          { index: 0, message: answer, finish_reason: (answer?.tool_calls ?? []).length > 0 ? 'tool_calls' : 'stop' },
        ],
        usage: {
          prompt_tokens: turn.prompt_tokens,
          completion_tokens: turn.completion_tokens,
          total_tokens: turn.prompt_tokens + turn.completion_tokens,
        },
      },
      outcome: 'success',
      ...times(frame, turn),
      tags: frame.tags,
      attributes: { ...frame.shared, turn: number },
    },
  };
}

function toolEvent(frame: Frame, tool: ToolUse): DemoEvent {
  const output = frame.run.traj[tool.at]?.content ?? '';
  const failure = toolFailure(output);
  return {
    format: 'custom',
    body: {
      trace_id: frame.trace_id,
      span_id: spanId(frame, String(tool.at)),
      parent_span_id: spanId(frame, tool.turn_at < 0 ? 'root' : String(tool.turn_at)),
      name: tool.name,
      // A trace is an error as soon as one of its spans is. A successful run that recovered from a
      // tool's failure is not an error, so there the failure is only in the attributes.
      outcome: failure !== null && frame.outcome !== 'success' ? failure : 'success',
      ...times(frame, tool),
      tags: frame.tags,
      attributes: {
        ...frame.shared,
        span_kind: 'tool',
        tool_name: tool.name,
        input: parsedOr(tool.input),
        output: parsedOr(output),
        ...(failure === null ? {} : { tool_failure: failure }),
      },
    },
  };
}

function rootEvent(frame: Frame, plan: RunPlan, name: string): DemoEvent {
  const { run } = frame;
  return {
    format: 'custom',
    body: {
      trace_id: frame.trace_id,
      span_id: spanId(frame, 'root'),
      name,
      outcome: frame.outcome,
      ...times(frame, { offset_ms: 0, duration_ms: plan.duration_ms }),
      tags: frame.tags,
      attributes: {
        ...frame.shared,
        span_kind: 'event',
        task_id: run.task_id,
        trial: run.trial,
        reward: run.reward,
        input: askedOf(run),
        output: lastAnswer(run.traj),
      },
    },
  };
}

/**
 * Returns the parsed value of a text that is a JSON object or list, else the text, so that the
 * service shows structured answers as such.
 */
function parsedOr(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

const askedOf = ({ info, traj }: Run): string =>
  info.task?.instruction ?? traj.find((message) => message.role === 'user')?.content ?? '';
const lastAnswer = (traj: readonly Message[]): string =>
  traj.findLast((message) => message.role === 'assistant' && (message.content ?? '') !== '')?.content ?? '';
