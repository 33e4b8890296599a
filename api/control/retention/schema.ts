// Request shape of a restore from cold storage.
import { z } from 'zod';
import { dayOf } from '../../../pipeline/domain/time/days.ts';
import { isoMillis } from '../../../schemas/formats/times.ts';
import type { RestoreArgs } from '../../../schemas/records/job_record.ts';

/**
 * Maximum ids of one restore. They are sent in one SQL statement, with at most 128 characters each.
 */
const TRACE_IDS_MAX = 500;
const DATE = /^\d{4}-\d\d-\d\d$/;

const day = z
  .string()
  .transform((text) => isoMillis(DATE.test(text) ? `${text}T00:00:00Z` : text))
  .refine((ms) => !Number.isNaN(ms) && ms >= 0, { error: 'must be a date (YYYY-MM-DD)' })
  .transform(dayOf)
  .meta({ type: 'string', format: 'date' });

export const restoreBody = z
  .strictObject({
    since: day.optional().describe('First day, UTC, on which spans began'),
    until: day.optional().describe('Last day, UTC, inclusive'),
    trace_ids: z
      .array(z.string().regex(/^[A-Za-z0-9_.:-]{1,128}$/, { error: 'must be the id of a trace' }))
      .min(1, { error: 'must have at least one id; leave it out for every trace of the days' })
      .max(TRACE_IDS_MAX, { error: `must have at most ${TRACE_IDS_MAX} ids` })
      .optional()
      .describe('Only these traces'),
  })
  .superRefine(({ since, until, trace_ids }, context) => {
    if (since === undefined && until === undefined && trace_ids === undefined)
      context.addIssue({
        code: 'custom',
        path: ['since'],
        message: 'must have days (since, until) or trace_ids: there is nothing else to restore',
      });
    if (since !== undefined && until !== undefined && until < since)
      context.addIssue({ code: 'custom', path: ['until'], message: 'must be a day that is not before since' });
  });

export function restoreArgsOf({ since, until, trace_ids }: z.output<typeof restoreBody>): RestoreArgs {
  return {
    since_day: since ?? null,
    until_day: until ?? null,
    trace_ids: trace_ids === undefined ? null : [...new Set(trace_ids)],
  };
}
