// Structures that instrumentations press into flat attributes: JSON in texts, and lists spread over numbered names.
// In: attribute values. Out: what they stand for. Whatever they hold, nothing throws and nothing is deeper than its names say.
import { DEPTH_MAX, deeperThan } from '../text/nesting.ts';
import { isFields, type Fields } from './draft.ts';

/** Names in the rest of a numbered attribute, of message.tool_calls.0.tool_call.function.name for one. */
const STEPS_MAX = 12;
const NUMBER = /^\d{1,9}$/;

/** The value that a text in JSON stands for; a text that is none, or one that is nested beyond all sense, stands for itself. */
export function parsedText(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{"]/.test(value)) return value;
  try {
    const parsed: unknown = JSON.parse(value);
    return deeperThan(parsed, DEPTH_MAX) ? value : parsed;
  } catch {
    // A text like any other.
    return value;
  }
}

/** A list, given as one or as JSON; null for anything else. */
export function parsedList(value: unknown): unknown[] | null {
  const parsed = parsedText(value);
  if (!Array.isArray(parsed)) return null;
  // A list of JSON texts stands for what they hold.
  return (parsed as unknown[]).map((item) =>
    typeof item === 'string' && item.startsWith('{') ? parsedText(item) : item,
  );
}

/** A text as it is, anything else as JSON. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/** Levels of values, and of JSON in their texts, in which texts are looked for. */
const TEXT_LEVELS_MAX = 48;

/** All texts in a value, those in the JSON that a text may be too. */
export function textsWithin(value: unknown, levels = TEXT_LEVELS_MAX): string[] {
  const parsed = parsedText(value);
  if (levels === 0) return [];
  // A text may be the JSON of a text.
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

/** The list that attributes named prefix0…, prefix1… spell out, in the order of the numbers; null where there are none. */
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

/** Whether there was room: a name that another one goes on from is no leaf. */
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

/** The first attribute of these that is a text. */
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

/** Texts of a list, given as one, as JSON or separated by commas; at most `max`. */
export function textsOf(value: unknown, max: number): string[] {
  const list = parsedList(value) ?? (typeof value === 'string' && value !== '' ? value.split(',') : []);
  return list.flatMap((item) => (typeof item === 'string' && item.trim() !== '' ? [item.trim()] : [])).slice(0, max);
}

export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});
