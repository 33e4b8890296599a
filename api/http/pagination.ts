// Paging: limit and offset of a query, page numbers of meta, and cursors. A cursor is opaque to
// clients: base64url of JSON that only the route that made it reads, and that is checked like any
// input.
import { z } from 'zod';
import { ApiError } from './errors.ts';

const LIMIT_MAX = 200;
const LIMIT_DEFAULT = 50;
/** Maximum offset; clients reach later items by cursor. */
const OFFSET_MAX = 2 ** 31;

const digits = (max: number) =>
  z
    .string()
    .regex(/^\d{1,10}$/, { error: 'must be an integer of 0 or more' })
    .transform(Number)
    .pipe(z.int().max(max));

export const limitParam = z
  .string()
  .regex(/^\d{1,10}$/, { error: `must be an integer between 1 and ${LIMIT_MAX}` })
  .transform(Number)
  .pipe(
    z
      .int()
      .min(1, { error: `must be an integer between 1 and ${LIMIT_MAX}` })
      .max(LIMIT_MAX, { error: `must be an integer between 1 and ${LIMIT_MAX}` }),
  )
  .default(LIMIT_DEFAULT)
  .meta({ type: 'integer', minimum: 1, maximum: LIMIT_MAX, default: LIMIT_DEFAULT, description: 'Items on a page' });

export const offsetParam = digits(OFFSET_MAX)
  .default(0)
  .meta({ type: 'integer', minimum: 0, default: 0, description: 'Items to skip' });

/** Query of a list that is paged by offset. */
export const offsetQuery = { limit: limitParam, offset: offsetParam };

/** Meta of a list that is paged by offset. */
export const pageMeta = z.object({
  total: z.int().min(0),
  page: z.int().min(1),
  per_page: z.int().min(1),
  has_more: z.boolean(),
});
export type PageMeta = z.infer<typeof pageMeta>;

/** Returns the meta of the page that begins at `offset`. */
export function pageMetaOf(total: number, limit: number, offset: number): PageMeta {
  return { total, page: Math.floor(offset / limit) + 1, per_page: limit, has_more: offset + limit < total };
}

/** Returns a cursor for a position. */
export function encodeCursor(position: unknown): string {
  return Buffer.from(JSON.stringify(position), 'utf8').toString('base64url');
}

/**
 * Returns the position of a cursor.
 * @throws ApiError invalid_request for a cursor of another route
 */
export function decodeCursor<T>(cursor: string, position: z.ZodType<T>): T {
  try {
    return position.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')));
  } catch (cause) {
    throw new ApiError('invalid_request', 'cursor: must be a cursor that this list has returned', { cause });
  }
}
