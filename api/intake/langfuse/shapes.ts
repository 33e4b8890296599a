// Shapes that the Langfuse paths share: pages by number.
import { z } from 'zod';

export const TAG = 'Langfuse';
const LIMIT_MAX = 200;
const LIMIT_DEFAULT = 50;

const whole = (max: number, fallback: number) =>
  z
    .string()
    .regex(/^\d{1,6}$/, { error: `must be an integer between 1 and ${max}` })
    .transform(Number)
    .pipe(
      z
        .int()
        .min(1)
        .max(max, { error: `must be an integer between 1 and ${max}` }),
    )
    .default(fallback)
    .meta({ type: 'integer', minimum: 1, maximum: max, default: fallback });

export const pageQuery = z.object({ page: whole(100_000, 1), limit: whole(LIMIT_MAX, LIMIT_DEFAULT) });

export const listMeta = z.object({ page: z.int(), limit: z.int(), totalItems: z.int(), totalPages: z.int() });

/** Returns one page of a list that is in memory. */
export function pageOf<T>(items: readonly T[], { page, limit }: { page: number; limit: number }) {
  const data = items.slice((page - 1) * limit, page * limit);
  return { data, meta: pageMetaOf(items.length, { page, limit }) };
}

export const pageMetaOf = (totalItems: number, { page, limit }: { page: number; limit: number }) => ({
  page,
  limit,
  totalItems,
  totalPages: Math.ceil(totalItems / limit),
});
