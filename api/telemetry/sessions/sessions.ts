// Lists sessions and end users with the totals of their traces, the last seen first. A trace
// belongs to the session and the end user of its first span that names one.
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { type CursorMeta, cursorPage } from '../../http/list_pages.ts';
import { cursorOf, type GroupsQuery, placeOf, type SessionItem } from './schema.ts';
import { type Group, type GroupFilters, readGroups, readGroupTotal } from './store.ts';

export interface SessionsDeps {
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
}

interface GroupList<Item> {
  data: Item[];
  meta: CursorMeta;
}

/** Fields of a session or an end user besides its id. */
export type Sums = Omit<SessionItem, 'session_id'>;

/**
 * Returns one page of sessions or of end users.
 *
 * @param item returns an item of the response from its id and totals
 * @throws ApiError invalid_request for a cursor that this list did not return
 */
export async function listGroups<Item>(
  { clickhouse }: Pick<SessionsDeps, 'clickhouse'>,
  { org_id, by, query, signal }: { org_id: string; by: 'session' | 'user'; query: GroupsQuery; signal: AbortSignal },
  item: (id: string, sums: Sums) => Item,
): Promise<GroupList<Item>> {
  const place = query.cursor === undefined ? null : placeOf(query.cursor);
  const narrowing = {
    session_id: query.session_id,
    user_id: query.user_id,
    agent_id: query.agent_id,
    since_ms: query.since,
    until_ms: query.until,
  };
  const isFiltered = Object.values(narrowing).some((value) => value !== undefined);
  const filters: GroupFilters = {
    org_id,
    ...(by === 'session' ? { by_session: true } : { by_user: true }),
    ...(isFiltered ? { filtered: true } : { unfiltered: true }),
    ...narrowing,
  };
  const from = place === null ? { skip: query.offset } : { skip: 0, from_last_ms: place.ms, from_id: place.id };
  const [[counted], groups] = await Promise.all([
    readGroupTotal(clickhouse, filters, { signal }),
    readGroups(clickhouse, { ...filters, ...from, rows: query.limit + 1 }, { signal }),
  ]);
  const page = cursorPage(groups, {
    limit: query.limit,
    total: counted?.total ?? 0,
    before: place?.before ?? query.offset,
    byCursor: place !== null,
    cursorAfter: (last, before) => cursorOf({ ms: last.last_ms, id: last.id, before }),
  });
  return { data: page.data.map((group) => item(group.id, sumsOf(group))), meta: page.meta };
}

export function sumsOf({
  traces,
  failed_traces,
  spans,
  input_tokens,
  output_tokens,
  cost,
  first_ms,
  last_ms,
}: Group): Sums {
  return {
    traces,
    failed_traces,
    failed_share: traces === 0 ? 0 : failed_traces / traces,
    spans,
    cost_usd: picoToUsd(usdToPico(cost)),
    input_tokens,
    output_tokens,
    first_seen: new Date(first_ms).toISOString(),
    last_seen: new Date(last_ms).toISOString(),
  };
}
