// Parameters and values that several slices take in the same shape.
import { z } from 'zod';

/** Path parameters of the routes that name an organization and nothing else. */
export const orgParams = z.object({ org_id: z.string() });

/** Query parameter that is `true` or `false`. */
export const booleanParam = z
  .enum(['true', 'false'])
  .transform((text) => text === 'true')
  .meta({ type: 'boolean' });
