// Chooses between a rail of icons and a wide one: the person's choice, else the width of the window.
import { mediaQuery } from '../ui/media_query.ts';
import { preferences, setPreferences, usePreferences } from './preferences.ts';

/** Below this width the titles of the rail would take room that lists and traces need. */
const small = mediaQuery('(width < 1100px)');

/** Returns true while the rail shows icons only. */
export function useRailNarrow(): boolean {
  const { rail } = usePreferences();
  const suits = small.useMatches();
  return rail === null ? suits : rail === 'narrow';
}

/** Makes a wide rail narrow, and a narrow one wide, for this page and for the next ones. */
export function toggleRail(): void {
  const { rail } = preferences();
  const isNarrow = rail === null ? small.matches() : rail === 'narrow';
  setPreferences({ rail: isNarrow ? 'wide' : 'narrow' });
}
