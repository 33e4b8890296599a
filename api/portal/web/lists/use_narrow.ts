// True on screens under 720 px, where rows take two lines and panels take the whole width.
import { mediaQuery } from '../ui/media_query.ts';

/** Returns true while the window is narrow. */
export const useNarrow = mediaQuery('(width < 720px)').useMatches;
