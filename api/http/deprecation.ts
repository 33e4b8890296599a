// Fields, parameters and routes that will go, as data on the route that has them: answers announce them with the headers
// Deprecation (RFC 9745) and Link, a route that goes as a whole also with Sunset (RFC 8594, which is about whole resources), and
// the OpenAPI document marks them with their date. A declaration that breaks the promised overlap stops the start.
import type { Route } from './route.ts';

/** A part of a route that will be taken away. */
export interface Deprecated {
  /** Where the part is. */
  part: 'query' | 'body' | 'response' | 'route';
  /** Its name, dotted for a nested one, [] for the items of a list; empty for the whole route. */
  field: string;
  /** ISO 8601 date from which it is discouraged. */
  since: string;
  /** ISO 8601 date at which it goes: at least 12 months after `since`. */
  sunset: string;
  /** What to use in its stead. */
  instead: string;
}

/** How long a part that will go stays. */
const OVERLAP_MONTHS = 12;

/** The headers that announce what a route will lose: the earliest date of each kind; none for a route that loses nothing. */
export function deprecationHeaders({ deprecated = [] }: Pick<Route, 'deprecated'>): [string, string][] {
  if (deprecated.length === 0) return [];
  const earliest = (dates: string[]) => Math.min(...dates.map((date) => Date.parse(date)));
  const ends = deprecated.filter(({ part }) => part === 'route').map(({ sunset }) => sunset);
  return [
    ['Deprecation', `@${String(Math.floor(earliest(deprecated.map(({ since }) => since)) / 1000))}`],
    ...(ends.length === 0 ? [] : [['Sunset', new Date(earliest(ends)).toUTCString()] as [string, string]]),
    ['Link', '</docs>; rel="deprecation"; type="text/html"'],
  ];
}

/** @throws Error naming the route whose part does not stay for as long as the contract promises */
export function checkOverlap(operationId: string, { part, field, since, sunset }: Deprecated): void {
  const what = `${operationId}: the deprecated ${part} ${field}`.trimEnd();
  const [from, to] = [new Date(since), new Date(sunset)];
  if (Number.isNaN(from.getTime()) || Number.isNaN(to.getTime()))
    throw new Error(`${what}: since and sunset take ISO 8601 dates`);
  from.setUTCMonth(from.getUTCMonth() + OVERLAP_MONTHS);
  if (to < from) throw new Error(`${what}: stays less than ${String(OVERLAP_MONTHS)} months`);
  if ((part === 'route') !== (field === '')) throw new Error(`${what}: a field has a name, a whole route none`);
}
