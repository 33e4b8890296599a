// The schema of a time in queries and bodies: ISO 8601, or a date alone, which is its first moment
// in UTC. Parses to milliseconds since the epoch.
import { z } from 'zod';
import { isoMillis } from '../../schemas/formats/times.ts';

const CHARS_MAX = 64;
const DATE = /^\d{4}-\d\d-\d\d$/;

export const timeParam = z
  .string()
  .max(CHARS_MAX, { error: 'must be an ISO 8601 time' })
  .transform((text) => isoMillis(DATE.test(text) ? `${text}T00:00:00Z` : text))
  .refine((ms) => !Number.isNaN(ms), { error: 'must be an ISO 8601 time' })
  .meta({ type: 'string', format: 'date-time' });
