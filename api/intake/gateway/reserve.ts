// Estimates what a call may use before it is made: its prompt as far as it can be counted, and the
// longest answer it may have. Takes the call; returns its figures, which the budget prices like the
// later record.
import { partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import type { EstimatedCall } from '../../admission/budget/uses.ts';
import type { GatewayCall } from './call.ts';
import { promptTokens } from './prompt_tokens.ts';
import { NAME_LENGTH_MAX, NO_MODEL } from './record.ts';
import { type Fields, isFields } from './values.ts';

/** Tokens of an answer whose caller sets no bound: more than nearly all answers have. */
export const ANSWER_TOKENS = 4096;
/**
 * Maximum estimate of an answer. A larger bound is no estimate: it would block the organization's
 * other calls for nothing.
 */
const ANSWER_TOKENS_MAX = 131_072;
const CHOICES_MAX = 128;

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
  call: EstimatedCall;
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
    return { call: callUsing(used, { org_id, call, now, partitions }), prompt };
  }

  /** Returns a call that names the model of a request and uses nothing, as counting tokens does. */
  ofNothing(org_id: string, call: GatewayCall, now: number, partitions: number): EstimatedCall {
    return callUsing({ input: 0, output: 0 }, { org_id, call, now, partitions });
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

function callUsing(
  { input, output }: { input: number; output: number },
  { org_id, call, now, partitions }: Asked,
): EstimatedCall {
  const { labels, model, operation, raw } = call;
  return {
    org_id,
    model: model === '' ? NO_MODEL : model.slice(0, NAME_LENGTH_MAX),
    provider: operation === 'messages' ? 'anthropic' : 'openai',
    agent_id: labels.agent_id ?? '',
    partition: partitionOf(org_id, labels.trace_id, partitions),
    at: now,
    input_tokens: input,
    output_tokens: output,
    storage_bytes: raw.length,
  };
}

const keyOf = (org_id: string, { operation, model }: GatewayCall): string =>
  `${org_id} ${operation} ${model.slice(0, 256)}`;

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
