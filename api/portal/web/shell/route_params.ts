// The parts of the address that the path of the page names.
import { createContext, use } from 'react';
import type { RouteParams } from './routes.tsx';

export const RouteParamsContext = createContext<RouteParams>({});

/** Returns the decoded parts of the address by name; a part that the path does not name is the empty text. */
export function useRouteParams(): (name: string) => string {
  const params = use(RouteParamsContext);
  return (name) => params[name] ?? '';
}
