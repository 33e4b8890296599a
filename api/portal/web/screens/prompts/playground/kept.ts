// Drafts and inputs of playgrounds in the tab's session storage, so that a reload loses nothing that
// was typed. Takes and returns plain values. Guarantees: what cannot be read counts as nothing, a
// full store is no error, and logging out removes everything. Bounded by KEPT_MAX prompts and
// CHARS_MAX characters; the oldest go first.
import type { Template, Values } from '../template.ts';
import type { InputSource } from './state.ts';

export interface Kept {
  /** Changed texts of drafts, in the order of their columns. */
  drafts: { version: string; template: Template }[];
  /** Inputs that a person chose or changed; null: none were. */
  inputs: { source: InputSource; values: Values }[] | null;
}

type Entry = [place: string, kept: Kept];

const KEY = 'millrace.playgrounds';
const KEPT_MAX = 5;
const CHARS_MAX = 1_000_000;
const NOTHING: Kept = { drafts: [], inputs: null };

/** Returns the stored form of playgrounds, without the oldest if they are too many or too large. */
export function packed(entries: readonly Entry[]): string {
  const kept = entries.slice(0, KEPT_MAX);
  for (;;) {
    const text = JSON.stringify(kept);
    if (text.length <= CHARS_MAX || kept.pop() === undefined) return text;
  }
}

/** Returns the playgrounds of a stored text, the newest first; none for a text of another form. */
export function unpacked(text: string | null): Entry[] {
  try {
    const entries: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(entries) ? entries.filter(isEntry) : [];
  } catch {
    return [];
  }
}

function isEntry(entry: unknown): entry is Entry {
  if (!Array.isArray(entry) || typeof entry[0] !== 'string') return false;
  const kept = entry[1] as Partial<Kept> | null | undefined;
  return Array.isArray(kept?.drafts) && (kept.inputs === null || Array.isArray(kept.inputs));
}

const placeOf = (org_id: string, name: string): string => JSON.stringify([org_id, name]);

function stored(): Entry[] {
  try {
    return unpacked(sessionStorage.getItem(KEY));
  } catch {
    return [];
  }
}

/** Returns what was kept of the playground of a prompt. */
export function keptPlayground(org_id: string, name: string): Kept {
  const place = placeOf(org_id, name);
  return stored().find(([one]) => one === place)?.[1] ?? NOTHING;
}

/** Keeps the playground of a prompt; one without changes is removed. */
export function keepPlayground(org_id: string, name: string, kept: Kept): void {
  const place = placeOf(org_id, name);
  const others = stored().filter(([one]) => one !== place);
  const isEmpty = kept.drafts.length === 0 && kept.inputs === null;
  try {
    sessionStorage.setItem(KEY, packed(isEmpty ? others : [[place, kept], ...others]));
  } catch {
    // The store is full or forbidden: a reload begins anew.
  }
}
