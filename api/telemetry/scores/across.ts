// Lists scores across traces, newest first, in pages by offset or by cursor. A list that names no
// trace covers a bounded time.
import { cursorPage } from '../../http/list_pages.ts';
import type { ScoreItem } from '../../http/trace_items.ts';
import { cursorOf, placeOf, type ScoresQuery } from './schema.ts';
import { itemOf, type ScoresDeps } from './scores.ts';
import { type AcrossParams, readScoresAcross, readTotalAcross } from './store.ts';

/** Time that a list without traces and without `since` covers. */
const DEFAULT_MS = 30 * 86_400_000;
/** End of a list without `until`: later than any score. */
const NO_END_MS = Date.parse('2200-01-01T00:00:00Z');

export interface ScoreList {
  data: ScoreItem[];
  meta: { total: number; page: number; per_page: number; has_more: boolean; next_cursor: string | null };
}

/** Serves GET /v1/scores. @throws ApiError trace_not_found, cross_org_access, invalid_request */
export async function listScores(
  { clickhouse, locate, now }: ScoresDeps,
  org_id: string,
  query: ScoresQuery,
  signal: AbortSignal,
): Promise<ScoreList> {
  const { limit, offset, cursor } = query;
  const from = cursor === undefined ? null : placeOf(cursor);
  if (query.trace_id !== undefined) await locate(org_id, query.trace_id, signal);
  const filters = filtersOf(org_id, query, now());
  const [[counted], rows] = await Promise.all([
    readTotalAcross(clickhouse, filters, { signal }),
    readScoresAcross(
      clickhouse,
      {
        ...filters,
        ...(from === null ? {} : { after_ms: from.ms, after_place: from.place }),
        rows: limit + 1,
        skip: from === null ? offset : 0,
      },
      { signal },
    ),
  ]);
  const { data, meta } = cursorPage(rows, {
    limit,
    total: counted?.total ?? 0,
    before: from?.before ?? offset,
    byCursor: false,
    cursorAfter: ({ created_ms, place }, before) => cursorOf({ ms: created_ms, place, before }),
  });
  return {
    data: data.map((row) => itemOf(row, row.trace_id)),
    meta: { ...meta, has_more: meta.next_cursor !== null },
  };
}

function filtersOf(org_id: string, query: ScoresQuery, now: number): AcrossParams {
  const { trace_id, trace_ids = [], name = [], user, source, since, until } = query;
  const traces = trace_id === undefined ? trace_ids : [trace_id];
  const isOfTraces = traces.length > 0;
  return {
    org_id,
    since_ms: since ?? (isOfTraces ? 0 : Math.max(0, (until ?? now) - DEFAULT_MS)),
    until_ms: until ?? NO_END_MS,
    ...(isOfTraces ? { trace_ids: traces } : {}),
    ...(name.length === 0 ? {} : { names: name }),
    ...(user === undefined ? {} : { user }),
    ...(source === 'user' ? { user_only: true } : {}),
    ...(source === 'judge' ? { judge_only: true } : {}),
    ...(source === 'otel' ? { otel_only: true } : {}),
  };
}
