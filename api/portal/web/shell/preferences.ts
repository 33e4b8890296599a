// What a person chose for this browser: theme, density, zone, keys, width of the rail. Kept in
// localStorage; never texts of traces, keys or tokens. A browser that refuses storage keeps the
// choices for the life of the page.
import { useSyncExternalStore } from 'react';

export interface Preferences {
  theme: 'system' | 'light' | 'dark';
  density: 'dense' | 'easy';
  zone: 'local' | 'utc';
  /** Shortcuts that are a single letter, which WCAG 2.1.4 asks to be switchable. */
  letter_keys: boolean;
  /** Width of the rail; null for the one that suits the window. */
  rail: 'wide' | 'narrow' | null;
  /** Width of the names in the waterfall, pixels; null for a share of the window. */
  trace_name_px: number | null;
  /** Dimension that the costs are split by where the address names none. */
  cost_split: 'model' | 'agent_id' | 'department' | 'realm';
}

const DEFAULTS: Preferences = {
  theme: 'system',
  density: 'dense',
  zone: 'local',
  letter_keys: true,
  rail: null,
  trace_name_px: null,
  cost_split: 'model',
};
const oneOf =
  (...values: readonly unknown[]) =>
  (value: unknown): boolean =>
    values.includes(value);
const isPixels = (value: unknown): boolean => typeof value === 'number' && value > 0 && value < 10_000;
const ACCEPTED: Record<keyof Preferences, (value: unknown) => boolean> = {
  theme: oneOf('system', 'light', 'dark'),
  density: oneOf('dense', 'easy'),
  zone: oneOf('local', 'utc'),
  letter_keys: oneOf(true, false),
  rail: oneOf('wide', 'narrow', null),
  trace_name_px: (value) => value === null || isPixels(value),
  cost_split: oneOf('model', 'agent_id', 'department', 'realm'),
};
const KEY = 'millrace.preferences';
const listeners = new Set<() => void>();
let current = read();

function read(): Preferences {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    const pairs = Object.entries(stored ?? {}).filter(
      ([name, value]) => Object.hasOwn(ACCEPTED, name) && ACCEPTED[name as keyof Preferences](value),
    );
    return { ...DEFAULTS, ...Object.fromEntries(pairs) };
  } catch {
    return DEFAULTS;
  }
}

/** Sets the attributes of the root element that the style sheets read. */
export function applyPreferences(): void {
  const { dataset } = document.documentElement;
  if (current.theme === 'system') delete dataset.theme;
  else dataset.theme = current.theme;
  dataset.density = current.density;
}

/** Changes some preferences, for this page and for the next ones. */
export function setPreferences(patch: Partial<Preferences>): void {
  current = { ...current, ...patch };
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
  } catch {
    // The choice holds for this page.
  }
  changed();
}

function changed(): void {
  applyPreferences();
  for (const listener of listeners) listener();
}

/** Returns the preferences outside of a component. */
export const preferences = (): Preferences => current;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns the preferences and renders again when they change. */
export const usePreferences = (): Preferences => useSyncExternalStore(subscribe, preferences);

/** Follows changes that another tab makes. */
export function followOtherTabs(): void {
  addEventListener('storage', ({ key }) => {
    if (key !== KEY && key !== null) return;
    current = read();
    changed();
  });
}
