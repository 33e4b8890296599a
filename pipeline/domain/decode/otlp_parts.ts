// Restores structures that instrumentations flatten into attributes: JSON in texts, and lists
// spread over numbered names. In: attribute values. Out: the structures. It never throws, and a
// result is never deeper than the attribute's name.
import { DEPTH_MAX, deeperThan } from '../text/nesting.ts';
import { isFields, type Fields } from './draft.ts';

/**
 * Maximum steps in the rest of a numbered attribute's name, such as
 * message.tool_calls.0.tool_call.function.name.
 */
const STEPS_MAX = 12;
const NUMBER = /^\d{1,9}$/;

/** Returns the value of a JSON text; any other text, or one nested too deeply, unchanged. */
export function parsedText(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{"]/.test(value)) return value;
  try {
    const parsed: unknown = JSON.parse(value);
    return deeperThan(parsed, DEPTH_MAX) ? value : parsed;
  } catch {
    // The text is not JSON.
    return value;
  }
}

/** Returns a list given as such or as JSON; null for anything else. */
export function parsedList(value: unknown): unknown[] | null {
  if (value === undefined) return null;
  const parsed = parsedText(value);
  if (!Array.isArray(parsed)) return null;
  // Items that are JSON texts are parsed.
  return (parsed as unknown[]).map((item) =>
    typeof item === 'string' && item.startsWith('{') ? parsedText(item) : item,
  );
}

/** Returns a text unchanged, any other value as JSON. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/** Maximum nesting, of values and of JSON within texts, that is searched for texts. */
const TEXT_LEVELS_MAX = 48;

/** Returns all texts in a value, including those within texts that are JSON. */
export function textsWithin(value: unknown, levels = TEXT_LEVELS_MAX): string[] {
  const parsed = parsedText(value);
  if (levels === 0) return [];
  // A JSON text may contain another JSON text.
  if (typeof parsed === 'string' && parsed !== value) return textsWithin(parsed, levels - 1);
  if (typeof parsed === 'string') return parsed.trim() === '' ? [] : [parsed.trim()];
  if (typeof parsed !== 'object' || parsed === null) return [];
  return Object.values(parsed).flatMap((item) => textsWithin(item, levels - 1));
}

interface Items {
  items: unknown[];
  keys: string[];
}

type Tree = Map<string, Tree | { leaf: unknown }>;

/**
 * Returns the list that attributes named prefix0…, prefix1… spell out, in the order of their
 * numbers; null when there are none.
 */
export function itemsUnder(attributes: Fields, prefix: string): Items | null {
  const root: Tree = new Map();
  const keys: string[] = [];
  for (const key in attributes) {
    if (!key.startsWith(prefix)) continue;
    const steps = key.slice(prefix.length).split('.');
    if (!NUMBER.test(steps[0] ?? '') || steps.length > STEPS_MAX) continue;
    if (plant(root, steps, attributes[key])) keys.push(key);
  }
  return keys.length === 0 ? null : { items: listOf(root), keys };
}

/** Adds a leaf. Returns false when a name continues another one, which then cannot be a leaf. */
function plant(tree: Tree, steps: readonly string[], leaf: unknown): boolean {
  let at = tree;
  for (const [index, step] of steps.entries()) {
    const known = at.get(step);
    if (index === steps.length - 1) {
      if (known !== undefined) return false;
      at.set(step, { leaf });
      return true;
    }
    if (known !== undefined && !(known instanceof Map)) return false;
    const next = known ?? (new Map() as Tree);
    at.set(step, next);
    at = next;
  }
  return false;
}

function listOf(tree: Tree): unknown[] {
  return [...tree].sort(([a], [b]) => Number(a) - Number(b)).map(([, node]) => valueOf(node));
}

function valueOf(node: Tree | { leaf: unknown }): unknown {
  if (!(node instanceof Map)) return node.leaf;
  if ([...node.keys()].every((key) => NUMBER.test(key))) return listOf(node);
  const fields: Record<string, unknown> = {};
  for (const [key, child] of node) if (key !== '__proto__') fields[key] = valueOf(child);
  return fields;
}

/** Returns the first of these attributes that is a text. */
export function firstText(from: readonly Fields[], keys: readonly string[]): string | undefined {
  for (const fields of from) {
    for (const key of keys) {
      const value = fields[key];
      if (typeof value === 'string' && value !== '') return value;
      if (typeof value === 'number') return String(value);
    }
  }
  return undefined;
}

/** Returns at most `max` texts of a list given as such, as JSON, or separated by commas. */
export function textsOf(value: unknown, max: number): string[] {
  const list = parsedList(value) ?? (typeof value === 'string' && value !== '' ? value.split(',') : []);
  return list.flatMap((item) => (typeof item === 'string' && item.trim() !== '' ? [item.trim()] : [])).slice(0, max);
}

export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});
