// Suggestions of the query field: names of filters for a word, and values of a filter after its colon.
// Pure; the values are those that the facets have counted.
import { allFilters, filterNamed } from './filters.ts';

const SHOWN_MAX = 8;

export interface SuggestedValue {
  /** Filter of the value, as the API names it. */
  name: string;
  value: string;
  traces: number;
}

export interface Suggestion {
  /** Text of the field after the choice. */
  text: string;
  label: string;
  aside: string;
  /** True if the choice completes a filter; a name still needs its value. */
  complete: boolean;
}

/** Returns what the last word of the text may become. */
export function suggestionsFor(text: string, values: readonly SuggestedValue[]): Suggestion[] {
  const start = lastWordStart(text);
  const before = text.slice(0, start);
  const word = text.slice(start);
  const negated = word.startsWith('-');
  const bare = negated ? word.slice(1) : word;
  const colon = bare.indexOf(':');
  if (colon > 0) return valuesOf(before, negated, bare.slice(0, colon), bare.slice(colon + 1), values);
  if (bare === '') return [];
  return [...matchingValues(before, negated, bare, values), ...namesFor(before, negated, bare)].slice(0, SHOWN_MAX);
}

function namesFor(before: string, negated: boolean, word: string): Suggestion[] {
  const wanted = word.toLowerCase();
  return allFilters()
    .filter(({ name, negatable }) => name !== 'search' && (!negated || negatable))
    .filter(({ name, label }) => name.startsWith(wanted) || label.toLowerCase().startsWith(wanted))
    .map(({ name, label }) => ({
      text: `${before}${negated ? '-' : ''}${name}:`,
      label: `${negated ? '-' : ''}${name}:`,
      aside: label,
      complete: false,
    }));
}

function valuesOf(
  before: string,
  negated: boolean,
  name: string,
  typed: string,
  values: readonly SuggestedValue[],
): Suggestion[] {
  const filter = filterNamed(name);
  if (filter === null) return [];
  const wanted = typed.replaceAll('"', '').toLowerCase();
  return values
    .filter((each) => each.name === filter.spec.name && each.value.toLowerCase().includes(wanted))
    .slice(0, SHOWN_MAX)
    .map((each) => suggestionOf(before, negated, { ...each, name }));
}

const MATCHES_MAX = 3;

/** Returns values of any filter that begin with the word: `plan` finds agent_id:planner. */
function matchingValues(
  before: string,
  negated: boolean,
  word: string,
  values: readonly SuggestedValue[],
): Suggestion[] {
  const wanted = word.toLowerCase();
  return values
    .filter(({ value }) => value.toLowerCase().startsWith(wanted))
    .slice(0, MATCHES_MAX)
    .map((each) => suggestionOf(before, negated, each));
}

function suggestionOf(before: string, negated: boolean, { name, value, traces }: SuggestedValue): Suggestion {
  const written = /^[^\s",]+$/.test(value) ? value : `"${value.replaceAll('"', '')}"`;
  const label = `${negated ? '-' : ''}${name}:${written}`;
  return { text: before + label, label, aside: `${traces} ${traces === 1 ? 'trace' : 'traces'}`, complete: true };
}

/** Returns where the last word begins; quotation marks hold a word together. */
function lastWordStart(text: string): number {
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '"') quoted = !quoted;
    if (text[at] === ' ' && !quoted) start = at + 1;
  }
  return start;
}
