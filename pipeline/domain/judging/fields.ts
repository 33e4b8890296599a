// The fields of a trace that judges can name, read as texts. Pure.
import type { JudgedTrace } from './judged_trace.ts';

export interface FieldReader {
  readonly name: string;
  /** True for a prompt, a response or an attribute: what sampling and retention may remove. */
  readonly is_text: boolean;
  /**
   * Returns the field's text; empty where the trace has none. Tags are one a line; other values are
   * JSON.
   */
  text(trace: JudgedTrace): string;
}

type Read = FieldReader['text'];

const PLAIN: Readonly<Record<string, Read>> = {
  name: ({ name }) => name,
  model: ({ model }) => model,
  outcome: ({ outcome }) => outcome,
  agent_id: ({ agent_id }) => agent_id,
  source_format: ({ source_format }) => source_format,
  tags: ({ tags }) => tags.join('\n'),
  duration_ms: ({ duration_ms }) => String(duration_ms),
  cost_usd: ({ cost_usd }) => String(cost_usd),
};
const TEXTS: Readonly<Record<string, Read>> = {
  prompt: ({ prompt }) => prompt,
  response: ({ response }) => response,
};
const ATTRIBUTES = 'attributes.';

/** The names as documented. */
export const FIELD_NAMES: readonly string[] = [...Object.keys(TEXTS), ...Object.keys(PLAIN), 'attributes.<path>'];

/**
 * Returns the reader of a field; null for an unknown name. attributes.a.b is the attribute with
 * that whole name, else b within the attribute a.
 */
export function fieldOf(name: string): FieldReader | null {
  const [plain, text] = [own(PLAIN, name), own(TEXTS, name)];
  if (plain !== undefined) return { name, is_text: false, text: plain };
  if (text !== undefined) return { name, is_text: true, text };
  if (!name.startsWith(ATTRIBUTES) || name.length === ATTRIBUTES.length) return null;
  const path = name.slice(ATTRIBUTES.length);
  const parts = path.split('.');
  return { name, is_text: true, text: ({ attributes }) => textOf(lookUp(attributes, path, parts)) };
}

/**
 * JSON of values that judges have read, cached because many judges read the same attribute of a
 * trace.
 */
const jsonOf = new WeakMap<object, string>();

const own = <T>(fields: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(fields, key) ? fields[key] : undefined;

function lookUp(attributes: Readonly<Record<string, unknown>>, path: string, parts: readonly string[]): unknown {
  if (Object.hasOwn(attributes, path)) return attributes[path];
  let at: unknown = attributes;
  for (const part of parts) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Record<string, unknown>)[part];
  }
  return at;
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'object') return typeof value === 'string' ? value : JSON.stringify(value);
  let json = jsonOf.get(value);
  if (json === undefined) jsonOf.set(value, (json = JSON.stringify(value)));
  return json;
}
