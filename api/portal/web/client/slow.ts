// True while a read has waited for its answer for longer than people expect, so that the page can say so.
const SLOW_MS = 4000;

type Listener = () => void;
const listeners = new Set<Listener>();
let slow = 0;

export const isSlow = (): boolean => slow > 0;

/** Calls a listener after each change; returns the function that ends that. */
export function onSlowChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Watches a read until the returned function is called. */
export function watchSlowness(): () => void {
  let counted = false;
  const count = (by: 1 | -1): void => {
    slow += by;
    for (const listener of listeners) listener();
  };
  const timer = setTimeout(() => {
    counted = true;
    count(1);
  }, SLOW_MS);
  return () => {
    clearTimeout(timer);
    if (counted) count(-1);
  };
}
