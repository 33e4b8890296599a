// The paths of the pages that exist, for links to pages that may not. Screens cannot import the table
// of routes, because it imports them.
import { createContext, use } from 'react';

export const PagesContext = createContext<ReadonlySet<string>>(new Set());

/** Returns the test for a page below /o/{org_id}, by its path in the table of routes: /incidents/:incident_id. */
export function useHasPage(): (path: string) => boolean {
  const paths = use(PagesContext);
  return (path) => paths.has(`/o/:org_id${path}`);
}
