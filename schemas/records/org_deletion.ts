// The deletion of an organization as stored in KV: while it runs, the record closes the organization in every process; afterwards it is
// what the service keeps of it: that it was deleted, when, by whom and by which job.
import { z } from 'zod';
import { orgKey } from './org.ts';

/** Kind of the job that erases an organization. */
export const DELETE_ORG = 'delete_org';

/** In the place of an org in records of jobs that are the operator's. No org id holds `=`. */
export const OPERATOR_JOBS = '=operator';

export const deleteOrgArgs = z.object({ org_id: z.string() });
export type DeleteOrgArgs = z.infer<typeof deleteOrgArgs>;

export const orgDeletion = z.object({
  org_id: z.string(),
  /** The job that carries it out. Another one takes its place when it has failed and the deletion is asked for again. */
  job_id: z.string(),
  state: z.enum(['running', 'complete']),
  asked_at: z.iso.datetime(),
  /** Who asked for it, as in the audit log. */
  asked_by: z.string(),
  request_id: z.string(),
  /** null while it runs. */
  completed_at: z.iso.datetime().nullable(),
});
export type OrgDeletion = z.infer<typeof orgDeletion>;

export const orgDeletionKey = (org_id: string): string => orgKey(org_id);

/** @throws ZodError when the text is no such record; SyntaxError when it is no JSON */
export function parseOrgDeletion(text: string): OrgDeletion {
  return orgDeletion.parse(JSON.parse(text));
}
