// Refused ingest requests, which each API process keeps in memory: a process asks the others for
// those of one organization, and each answers with its own.
import { z } from 'zod';

/** Subject of the questions; the answer is of the shape below. */
export const REFUSALS_SUBJECT = 'refusals.list';

export const refusalsQuestion = z.object({ org_id: z.string() });

const refusal = z.object({
  at: z.iso.datetime(),
  path: z.string().describe('Path of the request, without its query'),
  code: z.string().describe('Error code of the response'),
  detail: z.string(),
  key_prefix: z.string().nullable().describe('Beginning of the API key; null for a request without one'),
});
export type Refusal = z.infer<typeof refusal>;
export const refusalList = z.array(refusal);
