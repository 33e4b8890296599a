// The state of a screen in the address bar, as a hook.
import { useCallback, useMemo } from 'react';
import { useSearch } from 'wouter';
import type { Codec } from './search_params.ts';

export interface ChangeOptions {
  /** True while somebody types: the entry in the history is replaced. A choice adds an entry. */
  replace?: boolean;
}

/** Returns the state of the query string and the function that changes parts of it. */
export function useSearchState<S>(
  codec: Codec<S>,
): readonly [state: S, change: (patch: Partial<S>, options?: ChangeOptions) => void] {
  const search = useSearch();
  const state = useMemo(() => codec.parse(search), [codec, search]);
  const change = useCallback(
    (patch: Partial<S>, { replace = false }: ChangeOptions = {}) => {
      changeSearch(codec.change(location.search, patch), replace);
    },
    [codec],
  );
  return [state, change];
}

/** Puts a query string into the address, unless it is there already. */
export function changeSearch(query: string, replace: boolean): void {
  const search = query === '' ? '' : `?${query}`;
  if (search === location.search) return;
  const address = `${location.pathname}${search}${location.hash}`;
  if (replace) history.replaceState(history.state, '', address);
  else history.pushState(null, '', address);
}
