// The tabs above a list: built-in views, then those of the person, then those of the organization. A
// view is a query string with a name. Parameters beside view= are changes to it and show as such.
import { parseListUrl, sameQuery, writeListUrl, type ListUrl } from '../lists/list_url.ts';

export interface ViewTab {
  view_id: string;
  name: string;
  /** Query string of the page. */
  query: string;
  scope: 'built_in' | 'private' | 'org';
}

export const BUILT_IN_VIEWS: readonly ViewTab[] = [
  { view_id: 'all', name: 'All', query: '', scope: 'built_in' },
  { view_id: 'errors', name: 'Errors', query: 'outcome=error,timeout', scope: 'built_in' },
  { view_id: 'slow', name: 'Slow', query: 'sort=duration_ms', scope: 'built_in' },
  { view_id: 'expensive', name: 'Expensive', query: 'sort=cost_usd', scope: 'built_in' },
  { view_id: 'unscored', name: 'Unscored', query: 'scored=false', scope: 'built_in' },
];

/** Returns the state that a view leads to; the time range of the list stays if the view names none. */
export function stateOfView(tab: ViewTab, current: ListUrl): ListUrl {
  const state = parseListUrl(tab.query);
  const names = new URLSearchParams(tab.query);
  const timed = names.has('t') || names.has('since') || names.has('until');
  return {
    ...state,
    time: timed ? state.time : current.time,
    live: current.live,
    view: tab.view_id === 'all' ? null : tab.view_id,
    rest: current.rest,
  };
}

/** Returns the tab that a state shows: the one it names, or the built-in one whose query it equals. */
export function currentTab(state: ListUrl, tabs: readonly ViewTab[]): ViewTab | null {
  const named = tabs.find(({ view_id }) => view_id === state.view);
  return named ?? tabs.find((tab) => sameQuery(stateOfView(tab, state), state)) ?? null;
}

/** Returns true if the state asks for other traces than the view that it names. */
export function changedFrom(tab: ViewTab, state: ListUrl): boolean {
  return !sameQuery(stateOfView(tab, state), state);
}

/** Returns the query string to save: what is shown, without the open trace and the name of the view. */
export function queryToSave(state: ListUrl): string {
  return writeListUrl({ ...state, peek: null, view: null, live: false, rest: [] });
}
