// Estimates what a call may use before it is made: its prompt as far as it can be counted, and the
// longest answer it may have. Takes the call; returns an event that the budget meters like the
// later record, so that one rule counts both. The event is never stored.
import { eventHex, partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import { estimateTokens } from '../../../pipeline/domain/text/tokens.ts';
import type { GatewayCall } from './call.ts';
import type { RecordedEvent } from './record.ts';
import { type Fields, isFields } from './values.ts';

/** Tokens of an answer whose caller sets no bound: more than nearly all answers have. */
export const ANSWER_TOKENS = 4096;
/**
 * Maximum estimate of an answer. A larger bound is no estimate: it would block the organization's
 * other calls for nothing.
 */
const ANSWER_TOKENS_MAX = 131_072;
const CHOICES_MAX = 128;
/** Tokens that the chat format adds to each message. */
const TOKENS_PER_MESSAGE = 4;
/** Depth of nesting to which texts are searched for. */
const DEPTH_MAX = 6;

/**
 * Maximum number of organizations and models with a learnt factor; beyond it the oldest is
 * forgotten.
 */
const LEARNT_MAX = 10_000;
/** Maximum factor between a prompt and its text: images, other tokenizers. */
const FACTOR_MAX = 100;
const CACHED = ['cache_read_input_tokens', 'cache_creation_input_tokens'];
/** Weight of a learnt factor that remains after each further call. */
const MEMORY = 0.9;

/** The use that a call may have. */
export interface Estimate {
  event: RecordedEvent;
  /** Tokens of the prompt's text alone. */
  prompt: number;
}

/** Estimates of calls, corrected by what earlier calls have used. */
export class Estimates {
  /** Factor between prompts and their text by organization and model; it decays with each call. */
  readonly #factors = new Map<string, number>();

  /**
   * Returns the most that a call may use.
   * @param now milliseconds since the epoch
   */
  of(org_id: string, call: GatewayCall, now: number, partitions: number): Estimate {
    const prompt = promptTokens(call);
    const factor = this.#factors.get(keyOf(org_id, call)) ?? 1;
    const used = { input: Math.ceil(prompt * factor), output: answerTokens(call) };
    return { event: eventUsing(used, { org_id, call, now, partitions }), prompt };
  }

  /** Returns an event that names the model of a request and uses nothing, as counting tokens does. */
  ofNothing(org_id: string, call: GatewayCall, now: number, partitions: number): RecordedEvent {
    return eventUsing({ input: 0, output: 0 }, { org_id, call, now, partitions });
  }

  /**
   * Learns from a call that has ended.
   * @param response the answer of the upstream
   */
  learn(org_id: string, call: GatewayCall, { prompt }: Estimate, response: unknown): void {
    const usage = isFields(response) && isFields(response['usage']) ? response['usage'] : null;
    const reported = usage === null ? null : count(usage, ['prompt_tokens', 'input_tokens']);
    if (usage === null || reported === null || prompt === 0) return;
    // Anthropic counts what a cache held apart from the input.
    const cached = CACHED.reduce((sum, name) => sum + (count(usage, [name]) ?? 0), 0);
    const used = reported + cached;
    const key = keyOf(org_id, call);
    const kept = 1 + ((this.#factors.get(key) ?? 1) - 1) * MEMORY;
    const factor = Math.min(FACTOR_MAX, Math.max(kept, used / prompt));
    this.#factors.delete(key);
    if (factor < 1.01) return;
    if (this.#factors.size >= LEARNT_MAX) this.#factors.delete(this.#factors.keys().next().value ?? '');
    this.#factors.set(key, factor);
  }
}

interface Asked {
  org_id: string;
  call: GatewayCall;
  now: number;
  partitions: number;
}

function eventUsing(
  { input, output }: { input: number; output: number },
  { org_id, call, now, partitions }: Asked,
): RecordedEvent {
  const { labels, model } = call;
  const isMessages = call.operation === 'messages';
  const body = JSON.stringify({
    request: { model: model === '' ? 'unknown' : model.slice(0, 1024), messages: [] },
    response: isMessages
      ? { content: [], usage: { input_tokens: input, output_tokens: output } }
      : { choices: [], usage: { prompt_tokens: input, completion_tokens: output } },
    duration_ms: 0,
    outcome: 'success',
    ...(labels.agent_id === null ? {} : { attributes: { agent_id: labels.agent_id } }),
  });
  const { trace_id } = labels;
  const event = {
    org_id,
    format: isMessages ? ('messages' as const) : ('chatcompletion' as const),
    event_hex: eventHex(body),
    trace_id,
    received_at: now,
    body,
  };
  return { event, partition: partitionOf(org_id, trace_id, partitions), bytes: body.length };
}

const keyOf = (org_id: string, { operation, model }: GatewayCall): string =>
  `${org_id} ${operation} ${model.slice(0, 256)}`;

function promptTokens({ operation, request }: GatewayCall): number {
  const texts: string[] = [];
  const messages = operation === 'chat' || operation === 'messages' ? request['messages'] : request['input'];
  collect(messages, texts, DEPTH_MAX);
  if (operation === 'messages') collect(request['system'], texts, DEPTH_MAX);
  collect(request['instructions'], texts, 1);
  const frames = Array.isArray(messages) ? TOKENS_PER_MESSAGE * messages.length : 0;
  // Models also read the definitions of tools.
  const tools = Array.isArray(request['tools']) ? JSON.stringify(request['tools']) : '';
  return estimateTokens(texts.join('\n')) + frames + estimateTokens(tools);
}

/** Collects the texts of a message: those under text and content. Images and files are skipped. */
function collect(value: unknown, texts: string[], depth: number): void {
  if (typeof value === 'string') texts.push(value);
  else if (depth > 0 && Array.isArray(value)) for (const item of value as unknown[]) collect(item, texts, depth - 1);
  else if (depth > 0 && isFields(value)) {
    for (const key of ['content', 'text', 'thinking', 'arguments', 'output']) collect(value[key], texts, depth - 1);
    // A tool call of an earlier answer.
    if (isFields(value['input'])) texts.push(JSON.stringify(value['input']));
  }
}

function answerTokens({ operation, request }: GatewayCall): number {
  if (operation === 'embeddings') return 0;
  const bound = count(request, ['max_completion_tokens', 'max_tokens', 'max_output_tokens']) ?? ANSWER_TOKENS;
  const choices = Math.min(CHOICES_MAX, Math.max(1, count(request, ['n']) ?? 1));
  return Math.min(ANSWER_TOKENS_MAX, bound) * choices;
}

function count(request: Fields, names: readonly string[]): number | null {
  for (const name of names) {
    const value = request[name];
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
  }
  return null;
}
