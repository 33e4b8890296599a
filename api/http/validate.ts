// Checks params, query or body of a request against a zod schema. A violation is 422
// invalid_request and names the field.
import type { z } from 'zod';
import { ApiError, describeIssues } from './errors.ts';

/**
 * Parses one part of a request.
 * @throws ApiError invalid_request naming the first invalid field
 */
export function parsePart<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new ApiError('invalid_request', describeIssues(result.error), { cause: result.error });
}
