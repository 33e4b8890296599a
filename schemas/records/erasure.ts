// Erasing what is stored of a person, as long work: the kind, what the job's record says of it, and what is kept beside it. The value
// that names the person stands in no record of a job, as these are kept for long: it is sealed in a bucket of its own, and is taken
// out of it when the work is done.
import { z } from 'zod';
import { orgKey } from './org.ts';

/** Kind of the job. */
export const ERASE = 'erase';

export const eraseArgs = z.object({
  attribute: z.string(),
  /** Where the value waits; see eraseAskKey. */
  ask_id: z.string(),
});
export type EraseArgs = z.infer<typeof eraseArgs>;

export const eraseAsk = z.object({
  /** The value, sealed for the org; null when the work is done. */
  sealed: z.string().nullable(),
  /** What was done; null until it is. */
  result: z.record(z.string(), z.unknown()).nullable(),
});
export type EraseAsk = z.infer<typeof eraseAsk>;

export const eraseAskKey = (org_id: string, ask_id: string): string => `${orgKey(org_id)}.${ask_id}`;

/** What a value is sealed for: it opens nowhere else. */
export const eraseAskContext = (org_id: string): string => `value to erase of ${org_id}`;
