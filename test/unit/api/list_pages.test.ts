// Pages of lists: what an answer shows of a list in memory, and of rows that a store read by offset or by cursor.
import { describe, expect, test } from 'vitest';
import { cursorPage, pageOf } from '../../../api/http/list_pages.ts';

describe('a page of a list in memory', () => {
  test('has the items from the offset on, and says that more follow', () => {
    expect(pageOf(['a', 'b', 'c', 'd', 'e'], { limit: 2, offset: 2 })).toEqual({
      data: ['c', 'd'],
      meta: { total: 5, page: 2, per_page: 2, has_more: true },
    });
  });

  test('is empty past the end of the list', () => {
    expect(pageOf(['a'], { limit: 2, offset: 4 })).toEqual({
      data: [],
      meta: { total: 1, page: 3, per_page: 2, has_more: false },
    });
  });
});

describe('a page of rows that a store read', () => {
  const page = (rows: readonly string[], { before = 0, byCursor = false } = {}) =>
    cursorPage(rows, {
      limit: 2,
      total: 5,
      before,
      byCursor,
      cursorAfter: (last, count) => `after ${last}, ${count} before`,
    });

  test('by offset has has_more and the cursor of the next page when one row more than the limit was read', () => {
    expect(page(['a', 'b', 'c'])).toEqual({
      data: ['a', 'b'],
      meta: { total: 5, page: 1, per_page: 2, has_more: true, next_cursor: 'after b, 2 before' },
    });
  });

  test('by cursor leaves has_more out and counts the items before it', () => {
    expect(page(['c', 'd', 'e'], { before: 2, byCursor: true })).toEqual({
      data: ['c', 'd'],
      meta: { total: 5, page: 2, per_page: 2, next_cursor: 'after d, 4 before' },
    });
  });

  test('at the end of the list has no cursor', () => {
    expect(page(['e'], { before: 4, byCursor: true }).meta.next_cursor).toBeNull();
    expect(page([]).meta).toEqual({ total: 5, page: 1, per_page: 2, has_more: false, next_cursor: null });
  });
});
