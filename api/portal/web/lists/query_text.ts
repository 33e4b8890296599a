// The text of a query field, read into filters and search words: `agent_id:planner -tags:prod "exact
// phrase" refund` is two filters and a search. Each word stands for itself, so a text that is not yet
// complete never fails; an unknown name before the colon leaves the word a search word.
import { filterNamed } from './filters.ts';
import { withFilter, type ListUrl } from './list_url.ts';

/** One chip of the field: a parameter of the API and one of its values. */
export interface Chip {
  name: string;
  value: string;
}

export interface QueryText {
  chips: readonly Chip[];
  /** Words and phrases that are left for the full-text search. */
  search: string;
}

/** Returns the chips and the search words of a text. */
export function parseQueryText(text: string): QueryText {
  const chips: Chip[] = [];
  const words: string[] = [];
  for (const token of tokensOf(text)) {
    const chip = chipOf(token);
    if (chip === null) words.push(token);
    else chips.push(chip);
  }
  return { chips, search: words.join(' ') };
}

/** Returns the state with the chips added and the search replaced, unless the text holds only chips. */
export function applyQueryText(state: ListUrl, text: string): ListUrl {
  const { chips, search } = parseQueryText(text);
  const filtered = chips.reduce((next, { name, value }) => addValue(next, name, value), state);
  return withFilter(filtered, 'search', search === '' ? [] : [search]);
}

/** Returns the state with one more value of a filter; filters with one value take the new one. */
export function addValue(state: ListUrl, name: string, value: string): ListUrl {
  const multiple = filterNamed(name)?.spec.multiple === true;
  return withFilter(state, name, multiple ? [...(state.filters.get(name) ?? []), value] : [value]);
}

/** Returns the state without one value of a filter. */
export function removeValue(state: ListUrl, name: string, value: string): ListUrl {
  return withFilter(
    state,
    name,
    (state.filters.get(name) ?? []).filter((other) => other !== value),
  );
}

/** Returns the chips of a state in the order of its filters; the search stands in the field itself. */
export function chipsOf(state: ListUrl): Chip[] {
  return [...state.filters]
    .filter(([name]) => name !== 'search')
    .flatMap(([name, values]) => values.map((value) => ({ name, value })));
}

/** Returns the words of a text; quotation marks hold several words together, also after a colon. */
function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  let token = '';
  let quoted = false;
  for (const char of text) {
    if (char === '"') quoted = !quoted;
    if (char.trim() === '' && !quoted) {
      if (token !== '') tokens.push(token);
      token = '';
    } else token += char;
  }
  if (token !== '') tokens.push(token);
  return tokens;
}

function chipOf(token: string): Chip | null {
  const colon = token.indexOf(':');
  if (colon <= 0) return null;
  const written = token.slice(0, colon);
  const name = written.startsWith('-') ? `not_${written.slice(1)}` : written;
  const filter = filterNamed(name);
  const value = token.slice(colon + 1).replaceAll('"', '');
  if (filter === null || filter.spec.name === 'search' || value.trim() === '') return null;
  return { name, value };
}
