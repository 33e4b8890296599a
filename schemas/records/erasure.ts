// Erasure of what is stored of a person, as a long job: its kind, the args in the job's record, and
// the request beside it. The value that names the person is in no job record, as these are kept for
// long: it is sealed in a bucket of its own, and deleted when the job is done.
import { z } from 'zod';
import { orgKey } from './org.ts';

/** Kind of the job. */
export const ERASE = 'erase';

export const eraseArgs = z.object({
  attribute: z.string(),
  /** Id of the request that holds the value; see eraseAskKey. */
  ask_id: z.string(),
});
export type EraseArgs = z.infer<typeof eraseArgs>;

export const erasureRequest = z.object({
  /** The value, sealed for the organization; null when the job is done. */
  sealed: z.string().nullable(),
  /** What the job did; null until it is done. */
  result: z.record(z.string(), z.unknown()).nullable(),
});
export type ErasureRequest = z.infer<typeof erasureRequest>;

export const eraseAskKey = (org_id: string, ask_id: string): string => `${orgKey(org_id)}.${ask_id}`;

/** Returns the sealing context of a value: it opens in no other. */
export const eraseAskContext = (org_id: string): string => `value to erase of ${org_id}`;
