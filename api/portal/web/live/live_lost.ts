// True while the live stream of this tab is cut and could not be opened again at once.
type Listener = () => void;
const listeners = new Set<Listener>();
let lost = false;

export const isLiveLost = (): boolean => lost;

/** Calls a listener after each change; returns the function that ends that. */
export function onLiveLostChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function setLiveLost(now: boolean): void {
  if (lost === now) return;
  lost = now;
  for (const listener of listeners) listener();
}
