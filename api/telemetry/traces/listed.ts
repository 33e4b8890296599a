// Traces for other slices that take a list query as text, or ids: at most as many as wanted, read in
// pages, each of which is bounded as the list's own are.
import { parse } from 'node:querystring';
import { ApiError } from '../../http/errors.ts';
import { checkQueryNames, familiesFolded } from '../../http/query_params.ts';
import type { TraceItem } from '../../http/trace_items.ts';
import { parsePart } from '../../http/validate.ts';
import { type ListDeps, listTraces } from './list.ts';
import { listQuery, type ListQuery } from './schema.ts';

const PAGE_ROWS = 1000;
/** Ids of one read, the most that the list takes. */
const IDS_AT_ONCE = 200;

/**
 * Returns the first traces of a list, in its order.
 * @param query query string of GET /v1/traces
 * @throws ApiError invalid_request naming the parameter
 */
export async function tracesOfQuery(
  deps: ListDeps,
  org_id: string,
  query: string,
  wanted: number,
  signal: AbortSignal,
): Promise<TraceItem[]> {
  const given = parsedQuery(query);
  const found: TraceItem[] = [];
  for (let cursor = given.cursor; found.length < wanted;) {
    const limit = Math.min(PAGE_ROWS, wanted - found.length);
    const { data, meta } = await listTraces(deps, org_id, { ...given, limit, cursor }, signal);
    found.push(...data);
    if (meta.next_cursor === null) break;
    cursor = meta.next_cursor;
  }
  return found;
}

/** Returns those of the traces that exist, in any order. */
export async function tracesById(
  deps: ListDeps,
  org_id: string,
  trace_ids: readonly string[],
  signal: AbortSignal,
): Promise<TraceItem[]> {
  const found: TraceItem[] = [];
  const every = parsedQuery('');
  for (let at = 0; at < trace_ids.length; at += IDS_AT_ONCE) {
    const ids = trace_ids.slice(at, at + IDS_AT_ONCE);
    const { data } = await listTraces(deps, org_id, { ...every, trace_ids: ids, limit: ids.length }, signal);
    found.push(...data);
  }
  return found;
}

function parsedQuery(query: string): ListQuery {
  try {
    const params = { ...parse(query) };
    checkQueryNames(listQuery, params);
    return parsePart(listQuery, familiesFolded(listQuery, params));
  } catch (error) {
    if (error instanceof ApiError) throw new ApiError(error.code, `query: ${error.detail}`, { cause: error });
    throw error;
  }
}
