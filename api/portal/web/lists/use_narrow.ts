// True on screens under 720 px, where rows take two lines and panels take the whole width.
import { useSyncExternalStore } from 'react';

const query = (): MediaQueryList => matchMedia('(width < 720px)');

function subscribe(listener: () => void): () => void {
  const media = query();
  media.addEventListener('change', listener);
  return () => {
    media.removeEventListener('change', listener);
  };
}

/** Returns true while the window is narrow. */
export const useNarrow = (): boolean => useSyncExternalStore(subscribe, () => query().matches);
