// Pages of lists, in two kinds: a page of a list in memory, by offset, and a page of rows that a store read, by offset or by
// cursor. It takes the query and the items, and returns the data and meta of the answer. pagination.ts has the parameters.
import { z } from 'zod';
import { limitParam, offsetParam, offsetQuery, pageMeta, pageMetaOf, type PageMeta } from './pagination.ts';

/** Query of a list that has no filter. */
export const pageQuery = z.object(offsetQuery);
export type PageQuery = z.output<typeof pageQuery>;

/** Returns the page that begins at `offset`, at most `limit` items long, of a list in memory. */
export function pageOf<Item>(items: readonly Item[], { limit, offset }: PageQuery): { data: Item[]; meta: PageMeta } {
  return { data: items.slice(offset, offset + limit), meta: pageMetaOf(items.length, limit, offset) };
}

/** Maximum characters of a cursor; enough for a number and an id of at most 128 characters. */
const CURSOR_CHARS_MAX = 500;

/** Returns the query parameters of a list that is paged by offset or by cursor. */
export const cursorQuery = (charsMax = CURSOR_CHARS_MAX) => ({
  limit: limitParam,
  offset: offsetParam,
  cursor: z.string().max(charsMax).optional().describe('meta.next_cursor of the previous page. Overrides offset'),
});

/** Meta of a list that is paged by offset or by cursor. */
export const cursorMeta = pageMeta.extend({
  has_more: z.boolean().optional().describe('Whether more items follow. Left out when the request has a cursor'),
  next_cursor: z.string().nullable().describe('Cursor of the next page, in both modes. null on the last page'),
});
export type CursorMeta = z.infer<typeof cursorMeta>;

/** Position and size of a page that is read by offset or by cursor. */
interface CursorPage<Row> {
  /** Items on a page. */
  limit: number;
  /** Items of the whole list. */
  total: number;
  /** Items before the page. */
  before: number;
  /** True if the request has a cursor. */
  byCursor: boolean;
  /** Returns the cursor of the page that begins after `last`, with `before` items before it. */
  cursorAfter: (last: Row, before: number) => string;
}

/**
 * Returns one page of rows that a store read.
 * @param rows the rows from the page's beginning on, one more than `limit` if the list goes on after the page
 */
export function cursorPage<Row>(
  rows: readonly Row[],
  { limit, total, before, byCursor, cursorAfter }: CursorPage<Row>,
): { data: Row[]; meta: CursorMeta } {
  const data = rows.slice(0, limit);
  const last = data.at(-1);
  const more = rows.length > limit && last !== undefined;
  return {
    data,
    meta: {
      total,
      page: Math.floor(before / limit) + 1,
      per_page: limit,
      ...(byCursor ? {} : { has_more: more }),
      next_cursor: more ? cursorAfter(last, before + data.length) : null,
    },
  };
}
