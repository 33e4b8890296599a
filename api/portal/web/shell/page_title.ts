// The title of the page: the frame shows it as the one h1 and in the title of the document.
import { useEffect, useSyncExternalStore } from 'react';

const PRODUCT = 'Millrace';
const listeners = new Set<() => void>();
let current: string | null = null;

function set(title: string | null): void {
  current = title;
  for (const listener of listeners) listener();
}

/** Names the page more exactly than the table of routes, for example by a trace's name. */
export function usePageTitle(title: string | null): void {
  useEffect(() => {
    set(title);
    return () => {
      set(null);
    };
  }, [title]);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns the title that the screen gave, or else the route's; keeps the document's title the same. */
export function useShownTitle(fallback: string): string {
  const given = useSyncExternalStore(subscribe, () => current);
  const title = given ?? fallback;
  useEffect(() => {
    document.title = `${title} · ${PRODUCT}`;
  }, [title]);
  return title;
}
