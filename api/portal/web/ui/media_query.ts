// A media query as a hook and as a question, for sizes of the window that decide more than styles.
import { useSyncExternalStore } from 'react';

interface MediaQuery {
  /** Returns whether the window matches now. */
  matches: () => boolean;
  /** The same for a component, which is rendered again when the answer changes. */
  useMatches: () => boolean;
}

/** @param text a media query: `(width < 720px)` */
export function mediaQuery(text: string): MediaQuery {
  const matches = (): boolean => matchMedia(text).matches;
  const subscribe = (listener: () => void): (() => void) => {
    const media = matchMedia(text);
    media.addEventListener('change', listener);
    return () => {
      media.removeEventListener('change', listener);
    };
  };
  return { matches, useMatches: () => useSyncExternalStore(subscribe, matches) };
}
