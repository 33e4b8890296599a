// Whether the window is too narrow for panels side by side.
import { useSyncExternalStore } from 'react';

const QUERY = '(width < 720px)';

function subscribe(listener: () => void): () => void {
  const query = matchMedia(QUERY);
  query.addEventListener('change', listener);
  return () => {
    query.removeEventListener('change', listener);
  };
}

/** Returns true under 720 px: rows take two lines, and the panel is a sheet. */
export const useNarrow = (): boolean => useSyncExternalStore(subscribe, () => matchMedia(QUERY).matches);
