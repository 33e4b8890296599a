// The state of a list in the address bar, as a hook.
import { useCallback, useMemo } from 'react';
import { useSearch } from 'wouter';
import { changeSearch } from '../url/use_search_state.ts';
import { parseListUrl, writeListUrl, type ListUrl } from './list_url.ts';

/** Changes the state; typing replaces the entry in the history, a choice adds one. */
export type ChangeList = (change: (state: ListUrl) => ListUrl, options?: { replace?: boolean }) => void;

/** Returns the state of the list and the function that changes it. */
export function useListUrl(): readonly [ListUrl, ChangeList] {
  const search = useSearch();
  const state = useMemo(() => parseListUrl(search), [search]);
  const change = useCallback<ChangeList>((next, { replace = false } = {}) => {
    changeSearch(writeListUrl(next(parseListUrl(location.search))), replace);
  }, []);
  return [state, change];
}
