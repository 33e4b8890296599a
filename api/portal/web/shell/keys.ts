// The shortcuts of what is on the screen. Each part of the page registers a scope with useKeys; an
// inner scope comes before an outer one for the same key, and a sequence (`g t`) comes before a
// single key. While somebody types, only shortcuts with Ctrl or ⌘ and Escape act. The overlay of `?`
// and the palette read the same table, so that every shortcut stands in both.
import { useEffect, useEffectEvent, useSyncExternalStore } from 'react';
import { createKeybindingsHandler } from 'tinykeys';
import { isLetterKey, tinyKeys } from './key_names.ts';
import { preferences } from './preferences.ts';

export interface KeyBinding {
  /** Shortcut, or several with one meaning: `j` and `ArrowDown`. */
  keys: string | readonly string[];
  /** Its action, as a command: "Open the trace". */
  label: string;
  run: (event?: KeyboardEvent) => void;
  /** True: not offered by the palette, because it only moves or depends on the focus. */
  silent?: boolean;
}

interface Scope {
  name: string;
  rank: number;
  bindings: readonly KeyBinding[];
}

/** Order of scopes: the frame, the screen, a panel of the screen. */
export const RANK = { frame: 0, screen: 1, panel: 2 } as const;

/** Longest time between two keys of a sequence, by the times at which they were pressed. */
const SEQUENCE_MS = 1500;
/** The handler's own limit counts until a key is handled, which a busy page does late, so it is far longer. */
const HANDLED_MS = 60_000;
const MODIFIERS: ReadonlySet<string> = new Set(['Shift', 'Control', 'Alt', 'Meta']);

let scopes: readonly Scope[] = [];
const listeners = new Set<() => void>();
let handler: ((event: Event) => void) | null = null;
/** The last key, which a sequence may begin with; it outlives a change of the scopes between two keys. */
let last: KeyboardEvent | null = null;
let matched: { keys: string; binding: KeyBinding; depth: number }[] = [];

function setScopes(next: readonly Scope[]): void {
  scopes = next;
  handler = null;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns all scopes on the screen, the outermost first. */
export const useScopes = (): readonly Scope[] => useSyncExternalStore(subscribe, () => scopes);

/**
 * Registers shortcuts while the component is mounted. Pass the same labels and keys on every render;
 * `run` may change.
 */
export function useKeys(name: string, bindings: readonly KeyBinding[], rank: number = RANK.screen): void {
  const run = useEffectEvent((index: number, event?: KeyboardEvent) => {
    bindings[index]?.run(event);
  });
  const shape = JSON.stringify(bindings.map(({ keys, label, silent }) => [keys, label, silent]));
  useEffect(() => {
    const table = JSON.parse(shape) as [string | string[], string, boolean | null][];
    const scope = {
      name,
      rank,
      bindings: table.map(([keys, label, silent], index) => ({
        keys,
        label,
        silent: silent ?? false,
        run: (event?: KeyboardEvent) => {
          run(index, event);
        },
      })),
    };
    setScopes([...scopes, scope].toSorted((a, b) => a.rank - b.rank));
    return () => {
      setScopes(scopes.filter((one) => one !== scope));
    };
  }, [name, shape, rank]);
}

function makeHandler(): (event: Event) => void {
  const map: Record<string, () => void> = {};
  for (const [depth, { bindings }] of scopes.entries())
    for (const binding of bindings)
      for (const keys of [binding.keys].flat())
        map[tinyKeys(keys)] = () => {
          matched.push({ keys, binding, depth });
        };
  // The handler calls the first shortcut that matches, so that `/` before `g /` would hide it.
  const longestFirst = Object.entries(map).toSorted(([a], [b]) => b.split(' ').length - a.split(' ').length);
  return createKeybindingsHandler(Object.fromEntries(longestFirst), { ignore: () => false, timeout: HANDLED_MS });
}

/** Returns the handler of the scopes that are on the screen, in the middle of the sequence that the last key began. */
function handlerFor(event: KeyboardEvent): (event: Event) => void {
  const begun = last !== null && event.timeStamp - last.timeStamp < SEQUENCE_MS ? last : null;
  if (handler !== null && (begun !== null || last === null)) return handler;
  handler = makeHandler();
  if (begun !== null) handler(begun);
  return handler;
}

const FIELD = 'input:not([type=checkbox],[type=radio],[type=button],[type=range]), textarea, select, [contenteditable]';

/** Returns true if the key belongs to the element that has the focus. */
function isTaken({ target, key, ctrlKey, metaKey }: KeyboardEvent): boolean {
  if (!(target instanceof Element) || ctrlKey || metaKey) return false;
  if (target.closest(FIELD) !== null) return key !== 'Escape';
  return (key === 'Enter' || key === ' ') && target.closest('a, button, summary, input') !== null;
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || isTaken(event) || document.querySelector('dialog:modal') !== null)
    return;
  const handle = handlerFor(event);
  matched = [];
  handle(event);
  if (!MODIFIERS.has(event.key)) last = event;
  const letters = preferences().letter_keys;
  const best = matched
    .filter(({ keys }) => letters || !isLetterKey(keys))
    .toSorted((a, b) => b.keys.split(' ').length - a.keys.split(' ').length || b.depth - a.depth)[0];
  if (best === undefined) return;
  event.preventDefault();
  best.binding.run(event);
}

/** Listens for shortcuts; called once. */
export function listenForKeys(): void {
  addEventListener('keydown', onKeyDown);
}
