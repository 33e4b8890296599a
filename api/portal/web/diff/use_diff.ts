// The comparison of two texts as a screen needs it, and how the person wants comparisons to be shown.
import { useEffect, useState, useSyncExternalStore } from 'react';
import { askDiff } from './ask_diff.ts';
import type { Diff, DiffForm } from './shape.ts';

interface Asked {
  form: DiffForm;
  left: string;
  right: string;
}

/** Returns the comparison; null until the worker has answered, an error if it failed. */
export function useDiff(form: DiffForm, left: string, right: string): Diff | Error | null {
  const [answer, setAnswer] = useState<{ asked: Asked; result: Diff | Error } | null>(null);
  useEffect(() => {
    const ending = new AbortController();
    const asked = { form, left, right };
    askDiff(asked, ending.signal).then(
      (result) => {
        setAnswer({ asked, result });
      },
      (error: unknown) => {
        if (!ending.signal.aborted)
          setAnswer({ asked, result: error instanceof Error ? error : new Error(String(error)) });
      },
    );
    return () => {
      ending.abort();
    };
  }, [form, left, right]);
  const isCurrent = answer?.asked.form === form && answer.asked.left === left && answer.asked.right === right;
  return isCurrent ? answer.result : null;
}

export type Columns = 'two' | 'one';
const KEY = 'millrace.diff.columns';
const listeners = new Set<() => void>();
let chosen: Columns = read();

function read(): Columns {
  try {
    return localStorage.getItem(KEY) === 'one' ? 'one' : 'two';
  } catch {
    return 'two';
  }
}

/** Chooses whether comparisons stand side by side or in one column, for this page and for the next ones. */
export function chooseColumns(columns: Columns): void {
  chosen = columns;
  try {
    localStorage.setItem(KEY, columns);
  } catch {
    // The choice holds for this page.
  }
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const useColumns = (): Columns => useSyncExternalStore(subscribe, () => chosen);
