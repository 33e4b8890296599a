// What a format's decoder finds in an event, before it becomes a span: names, texts, usage as the vendor counted it.
// Decoders fill it and nothing else; ids, times, estimates, price and bounds are the same for all formats (span.ts).
import { TOKENS_MAX } from '../../../schemas/formats/fields.ts';
import type { SpanKind } from '../traces/span.ts';

/**
 * Tokens as reported. input_tokens holds all input: uncached, read from a cache and written to one (vendors that report
 * cached tokens apart have them added). null: not reported.
 */
export interface ReportedUsage {
  input_tokens: number | null;
  output_tokens: number | null;
  cached_input_tokens: number;
  cache_write_tokens: number;
  cache_write_1h_tokens: number;
  input_audio_tokens: number;
  output_audio_tokens: number;
}

export interface Draft {
  kind: SpanKind;
  name: string;
  /** As requested; empty where the span is no model call. */
  model: string;
  /** As answered, where it differs in name; found where the requested name has no price (deployment names). */
  answered_model: string;
  /** Vendor whose prices are looked at first. */
  provider: string | null;
  /** The conversation; its JSON text becomes the prompt. null: prompt_text is the prompt. */
  messages: readonly unknown[] | null;
  prompt_text: string;
  response: string;
  usage: ReportedUsage;
  /** Whether there is an answer whose tokens can be estimated; a call that failed without one used nothing that is known. */
  answered: boolean;
  attributes: Record<string, unknown>;
  /** [action, observation] of each intermediate step: a tool child each. */
  steps: readonly (readonly [string, string])[];
  /** What it says of usage and cost is said of its children too, and counted there. */
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
});

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A fresh object with the event's attributes: what decoders add never replaces what the sender wrote. */
export function ownAttributes(event: Fields): Record<string, unknown> {
  const given = event['attributes'];
  return isFields(given) ? { ...given } : {};
}

/** Adds an attribute unless the value is absent or the sender has one of that name. */
export function addAttribute(attributes: Record<string, unknown>, key: string, value: unknown): void {
  // Assigning to __proto__ would change the object instead of adding to it.
  if (value === undefined || value === null || key === '__proto__' || Object.hasOwn(attributes, key)) return;
  attributes[key] = value;
}

/** Adds all fields of an object but the known ones, their names prefixed, so that nothing a sender wrote is lost. */
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

/** Fields that every format has; they have their place on the span, or are read from there. */
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

/** Adds items, as many as a sender likes: spread as arguments of push, some hundred thousand end in a RangeError. */
export function addAll<T>(to: T[], items: Iterable<T>): void {
  for (const item of items) to.push(item);
}

/** The text of a message's content: a string, or the text of its parts joined. */
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

/** A token count wherever a sender may have put one: a number that the store holds, or null. */
export function tokenNumber(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 && value <= TOKENS_MAX ? Math.round(value) : null;
}
