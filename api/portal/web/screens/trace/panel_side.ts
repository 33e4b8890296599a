// Where the span panel stands: beside the waterfall or below it. The choice is the person's.
import { useSyncExternalStore } from 'react';

type Side = 'side' | 'below';
const KEY = 'millrace.trace.panel';
const listeners = new Set<() => void>();
let current: Side = read();

function read(): Side {
  try {
    return localStorage.getItem(KEY) === 'below' ? 'below' : 'side';
  } catch {
    return 'side';
  }
}

export function togglePanelSide(): void {
  current = current === 'side' ? 'below' : 'side';
  try {
    localStorage.setItem(KEY, current);
  } catch {
    // The choice holds for this page.
  }
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const usePanelSide = (): Side => useSyncExternalStore(subscribe, () => current);
