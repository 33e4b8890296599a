// Plans the replay of a trace: what its model calls would be asked today. In: the spans of a trace,
// and the prompts of the registry. Out: the calls in their original order, or the reason why it
// cannot be done, naming the span. Pure; makes no calls.
import type { PromptRecord } from '../../../schemas/records/prompt.ts';
import { renderPrompt } from '../text/prompt.ts';
import { RENDERED_CHARS_MAX } from '../text/template.ts';

/** Maximum model calls of one trace that are replayed. */
export const REPLAY_CALLS_MAX = 100;
/** Maximum characters of all new prompts of a replay. */
export const REPLAY_CHARS_MAX = 16 * 1024 * 1024;

/** The fields of a span that a replay needs. */
export interface ReplaySpan {
  span_id: string;
  /** Empty for none. */
  parent_span_id: string;
  kind: string;
  name: string;
  model: string;
  /** Milliseconds since the epoch. */
  started_ms: number;
  attributes: Readonly<Record<string, unknown>>;
  tags: readonly string[];
  /** Empty when none is stored. */
  prompt: string;
  response: string;
  /** False when sampling kept the numbers only. */
  sampled: boolean;
}

/** A message in the form of OpenAI-compatible APIs. */
export type ReplayMessage = Readonly<Record<string, unknown>> & { role: string };

export interface ReplayCall {
  span: ReplaySpan;
  /** Null when the span names no prompt, so that the call is repeated as it was. */
  prompt_name: string | null;
  prompt_version: string | null;
  model: string;
  new_prompt: string;
  messages: ReplayMessage[];
  /** The call's other parameters: temperature, tools and the like. */
  parameters: Record<string, unknown>;
}

export type ReplayPlan = { ok: true; calls: ReplayCall[] } | { ok: false; detail: string };

class Refused extends Error {}

/**
 * Plans a replay. A call that names a prompt uses its newest version, any other call its original
 * prompt.
 * @param newestOf returns the newest version of a prompt; null when there is none
 */
export function planReplay(spans: readonly ReplaySpan[], newestOf: (name: string) => PromptRecord | null): ReplayPlan {
  const made = spans.filter(({ kind }) => kind === 'llm').sort((a, b) => a.started_ms - b.started_ms);
  if (made.length === 0) return { ok: false, detail: 'The trace has no model call to replay.' };
  if (made.length > REPLAY_CALLS_MAX)
    return {
      ok: false,
      detail: `The trace has ${made.length} model calls; up to ${REPLAY_CALLS_MAX} are replayed.`,
    };
  try {
    let chars = 0;
    const calls = made.map((span) => {
      const call = planCall(span, newestOf);
      chars += call.new_prompt.length;
      if (chars > REPLAY_CHARS_MAX) throw new Refused(`The prompts have more than ${REPLAY_CHARS_MAX} characters.`);
      return call;
    });
    return { ok: true, calls };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { ok: false, detail: error.message };
  }
}

/** Returns the message that names the span that cannot be replayed, and the reason. */
export const replayProblem = (span_id: string, reason: string): string => `Span ${span_id}: ${reason}.`;

function planCall(span: ReplaySpan, newestOf: (name: string) => PromptRecord | null): ReplayCall {
  const refuse = (reason: string) => new Refused(replayProblem(span.span_id, reason));
  if (!span.sampled) throw refuse('sampling kept its numbers only, not its prompt');
  if (span.prompt === '' && span.response === '') throw refuse('its prompt and response are no longer stored');
  const asked = span.attributes['prompt_name'];
  const call = typeof asked === 'string' ? named(span, asked, newestOf(asked), refuse) : repeated(span, refuse);
  if (call.model === '') throw refuse('neither it nor its prompt names a model');
  return { ...call, span, parameters: parametersOf(span.attributes) };
}

type Asked = Omit<ReplayCall, 'span' | 'parameters'>;
type Refuse = (reason: string) => Refused;

function named(span: ReplaySpan, name: string, prompt: PromptRecord | null, refuse: Refuse): Asked {
  if (prompt === null) throw refuse(`its prompt ${JSON.stringify(name.slice(0, 128))} is not in the registry`);
  const given = variablesOf(span.attributes['prompt_variables'] ?? {});
  if (!isFields(given)) throw refuse('its attributes.prompt_variables is no object');
  const { messages, text, missing, cut } = renderPrompt(prompt.template, given);
  if (missing.length > 0)
    throw refuse(`its attributes.prompt_variables lacks ${missing.join(', ')}, which ${name}@${prompt.version} has`);
  if (cut) throw refuse(`its prompt has more than ${RENDERED_CHARS_MAX} characters with the variables in it`);
  return {
    prompt_name: name,
    prompt_version: prompt.version,
    model: prompt.model ?? span.model,
    new_prompt: text,
    messages,
  };
}

/** Accepts an object or its JSON, since not every sender's attributes can contain objects. */
function variablesOf(given: unknown): unknown {
  if (typeof given !== 'string') return given;
  try {
    return JSON.parse(given);
  } catch {
    return null;
  }
}

function repeated(span: ReplaySpan, refuse: Refuse): Asked {
  if (span.prompt === '') throw refuse('its prompt is not stored');
  if (span.attributes['prompt_truncated'] === true)
    throw refuse('its prompt was cut when it was stored, and it names none of the registry');
  return {
    prompt_name: null,
    prompt_version: null,
    model: span.model,
    new_prompt: span.prompt,
    messages: messagesOf(span.prompt),
  };
}

/**
 * Returns the messages that a stored prompt is the JSON of; any other text becomes one message of
 * the user.
 */
export function messagesOf(prompt: string): ReplayMessage[] {
  let parsed: unknown = null;
  try {
    parsed = JSON.parse(prompt);
  } catch {
    // The prompt is plain text.
  }
  const whole = [{ role: 'user', content: prompt }];
  if (!Array.isArray(parsed) || parsed.length === 0) return whole;
  const messages = (parsed as unknown[]).map(messageOf);
  return messages.every((message) => message !== null) ? messages : whole;
}

/** Role names of other libraries, mapped to the API's. */
const ROLES: Readonly<Record<string, string>> = { human: 'user', ai: 'assistant', model: 'assistant' };

function messageOf(value: unknown): ReplayMessage | null {
  if (!isFields(value) || typeof value['role'] !== 'string') return null;
  const role = (Object.hasOwn(ROLES, value['role']) ? ROLES[value['role']] : undefined) ?? value['role'];
  const { content, parts } = value;
  // OpenTelemetry's messages have parts instead of content.
  if (content === undefined && Array.isArray(parts)) return { role, content: parts.map(partText).join('') };
  return { ...value, role };
}

const partText = (part: unknown): string =>
  isFields(part) && typeof part['content'] === 'string' ? part['content'] : '';

const NUMBERS = [
  'temperature',
  'top_p',
  'max_tokens',
  'max_completion_tokens',
  'frequency_penalty',
  'presence_penalty',
  'seed',
] as const;
const OTHERS = ['stop', 'response_format', 'reasoning_effort', 'tool_choice'] as const;

/** Returns the parameters that determine a model's answer, from where decoding put them. */
function parametersOf(attributes: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = (name: string): unknown => attributes[`gen_ai.request.${name}`];
  const numbers = NUMBERS.map((name) => [name, given(name)] as const).filter(([, value]) => typeof value === 'number');
  const tools = attributes['gen_ai.tool.definitions'];
  const others = [...OTHERS.map((name) => [name, given(name)] as const), ['tools', tools] as const].filter(
    ([, value]) => value != null,
  );
  // tool_choice is rejected without tools.
  return Object.fromEntries([...numbers, ...others].filter(([name]) => name !== 'tool_choice' || Array.isArray(tools)));
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
