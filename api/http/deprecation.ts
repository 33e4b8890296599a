// Deprecated fields, parameters and routes, declared on their route. Responses announce them with
// the headers Deprecation (RFC 9745) and Link, a whole route also with Sunset (RFC 8594, which
// covers whole resources), and the OpenAPI document marks them with their date. A declaration that
// breaks the promised overlap stops the start.
import type { Route } from './route.ts';

/** A part of a route that will be removed. */
export interface Deprecated {
  /** Location of the part. */
  part: 'query' | 'body' | 'response' | 'route';
  /**
   * Name of the part, dotted for a nested one, [] for the items of a list; empty for the whole
   * route.
   */
  field: string;
  /** ISO 8601 date of the deprecation. */
  since: string;
  /** ISO 8601 date of the removal: at least 12 months after `since`. */
  sunset: string;
  /** Replacement. */
  instead: string;
}

/** Minimum months between deprecation and removal. */
const OVERLAP_MONTHS = 12;

/**
 * Returns the headers that announce the deprecations of a route, with the earliest date of each
 * kind; none for a route without any.
 */
export function deprecationHeaders({ deprecated = [] }: Pick<Route, 'deprecated'>): [string, string][] {
  if (deprecated.length === 0) return [];
  const earliest = (dates: string[]) => Math.min(...dates.map((date) => Date.parse(date)));
  const ends = deprecated.filter(({ part }) => part === 'route').map(({ sunset }) => sunset);
  return [
    ['Deprecation', `@${Math.floor(earliest(deprecated.map(({ since }) => since)) / 1000)}`],
    ...(ends.length === 0 ? [] : [['Sunset', new Date(earliest(ends)).toUTCString()] as [string, string]]),
    ['Link', '</docs>; rel="deprecation"; type="text/html"'],
  ];
}

/** @throws Error naming the route whose part is removed earlier than the contract promises */
export function checkOverlap(operationId: string, { part, field, since, sunset }: Deprecated): void {
  const what = `${operationId}: the deprecated ${part} ${field}`.trimEnd();
  const [from, to] = [new Date(since), new Date(sunset)];
  if (Number.isNaN(from.getTime()) || Number.isNaN(to.getTime()))
    throw new Error(`${what}: since and sunset take ISO 8601 dates`);
  from.setUTCMonth(from.getUTCMonth() + OVERLAP_MONTHS);
  if (to < from) throw new Error(`${what}: is removed in less than ${OVERLAP_MONTHS} months`);
  if ((part === 'route') !== (field === '')) throw new Error(`${what}: a field must have a name, a whole route none`);
}
