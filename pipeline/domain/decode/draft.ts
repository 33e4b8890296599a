// The result of a format's decoder, before it becomes a span: names, texts, and usage as the vendor
// counts it. Decoders fill a draft and nothing else; ids, times, estimates, price and bounds are
// the same for all formats (span.ts).
import { TOKENS_MAX } from '../../../schemas/formats/fields.ts';
import type { SpanKind } from '../traces/span.ts';

/**
 * Tokens as reported; null where not reported. input_tokens is all input: uncached, read from a
 * cache and written to one. Decoders of vendors that report cached tokens separately add them.
 */
export interface ReportedUsage {
  input_tokens: number | null;
  output_tokens: number | null;
  cached_input_tokens: number;
  cache_write_tokens: number;
  cache_write_1h_tokens: number;
  input_audio_tokens: number;
  output_audio_tokens: number;
  /** Part of output_tokens. */
  reasoning_tokens: number;
}

export interface Draft {
  kind: SpanKind;
  name: string;
  /** Model as requested; empty for spans that are not model calls. */
  model: string;
  /**
   * Model as answered, where its name differs. Its price applies when the requested name (a
   * deployment's name) has none.
   */
  answered_model: string;
  /** Vendor whose prices are looked up first. */
  provider: string | null;
  /** The conversation; its JSON text becomes the prompt. When null, prompt_text is the prompt. */
  messages: readonly unknown[] | null;
  prompt_text: string;
  response: string;
  usage: ReportedUsage;
  /**
   * True when there is an answer whose tokens can be estimated. A call that failed without one has
   * no known usage.
   */
  answered: boolean;
  attributes: Record<string, unknown>;
  /** [action, observation] of each intermediate step; each becomes a tool child. */
  steps: readonly (readonly [string, string])[];
  /** Attributes of the process that sent the span; its deployment and service are read from them. */
  resource?: Fields;
  /**
   * Set on log records: `message` holds messages of its span, `line` a text that is neither asked of a
   * model nor answered by one.
   */
  record?: 'message' | 'line';
  /** True when the span repeats usage and cost of its children, where they are counted. */
  repeats_usage?: boolean;
}

export const NO_USAGE: Readonly<ReportedUsage> = Object.freeze({
  input_tokens: null,
  output_tokens: null,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
  input_audio_tokens: 0,
  output_audio_tokens: 0,
  reasoning_tokens: 0,
});

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns a new object with the event's attributes, to which decoders add without replacing what
 * the sender wrote.
 */
export function ownAttributes(event: Fields): Record<string, unknown> {
  const given = event['attributes'];
  return isFields(given) ? { ...given } : {};
}

/** Adds an attribute unless the value is absent or the sender set one of that name. */
export function addAttribute(attributes: Record<string, unknown>, key: string, value: unknown): void {
  // Assigning to __proto__ would change the object instead of adding to it.
  if (value === undefined || value === null || key === '__proto__' || Object.hasOwn(attributes, key)) return;
  attributes[key] = value;
}

/**
 * Adds all unknown fields of an object with prefixed names, so that nothing a sender wrote is lost.
 */
export function addOthers(
  attributes: Record<string, unknown>,
  from: Fields,
  known: ReadonlySet<string>,
  prefix: string,
): void {
  for (const key in from) {
    if (!known.has(key)) addAttribute(attributes, prefix + key, from[key]);
  }
}

/** Fields that every format has: they become columns of the span, or decoders read them by name. */
export const EVENT_FIELDS: ReadonlySet<string> = new Set([
  'trace_id',
  'parent_span_id',
  'span_id',
  'tags',
  'attributes',
  'started_at',
  'ended_at',
  'duration_ms',
  'outcome',
  'request',
  'response',
]);

/**
 * Appends any number of items: spread as arguments of push, some hundred thousand end in a
 * RangeError.
 */
export function addAll<T>(to: T[], items: Iterable<T>): void {
  for (const item of items) to.push(item);
}

/** Returns the text of a message's content: the string itself, or the joined text of its parts. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  let text = '';
  for (const part of content as unknown[]) {
    if (typeof part === 'string') text += part;
    else if (isFields(part) && typeof part['text'] === 'string') text += part['text'];
  }
  return text;
}

/** Returns a token count that the store can hold, rounded; null for any other value. */
export function tokenNumber(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= TOKENS_MAX ? Math.round(value) : null;
}
