// The columns that a person chose for the trace list, with their order and widths. Kept in this browser;
// cols= in the address overrides them.
import { useSyncExternalStore } from 'react';
import { columnsOf, type ListColumn, namesOf } from '../../lists/columns.ts';
import type { ListUrl } from '../../lists/list_url.ts';

const KEY = 'millrace.columns.traces';
const listeners = new Set<() => void>();
let chosen = read();

function read(): readonly string[] | null {
  try {
    const names: unknown = JSON.parse(localStorage.getItem(KEY) ?? 'null');
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : null;
  } catch {
    return null;
  }
}

/** Keeps the columns as the person's; null returns to the default ones. */
export function chooseColumns(columns: readonly ListColumn[] | null): void {
  chosen = columns === null ? null : namesOf(columns);
  try {
    if (chosen === null) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, JSON.stringify(chosen));
  } catch {
    // The choice holds for the life of the page.
  }
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns the columns of the address, or else those of the person. */
export function useColumns({ cols }: ListUrl): readonly ListColumn[] {
  const own = useSyncExternalStore(subscribe, () => chosen);
  return columnsOf(cols ?? own);
}
