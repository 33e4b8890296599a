// Deletion of an organization in KV. While it runs, the record closes the organization in every
// process. Afterwards it is all that the service keeps: that the organization was deleted, when, by
// whom and by which job.
import { z } from 'zod';
import { orgKey } from './org.ts';

/** Kind of the job that erases an organization. */
export const DELETE_ORG = 'delete_org';

/**
 * Stands for the organization in the records of the operator's jobs. No organization id contains
 * `=`.
 */
export const OPERATOR_JOBS = '=operator';

export const deleteOrgArgs = z.object({ org_id: z.string() });
export type DeleteOrgArgs = z.infer<typeof deleteOrgArgs>;

export const orgDeletion = z.object({
  org_id: z.string(),
  /**
   * The job that carries it out. When it failed and the deletion is requested again, another job
   * replaces it.
   */
  job_id: z.string(),
  state: z.enum(['running', 'complete']),
  asked_at: z.iso.datetime(),
  /** Who requested it, as in the audit log. */
  asked_by: z.string(),
  request_id: z.string(),
  /** null while it runs. */
  completed_at: z.iso.datetime().nullable(),
});
export type OrgDeletion = z.infer<typeof orgDeletion>;

export const orgDeletionKey = (org_id: string): string => orgKey(org_id);

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parseOrgDeletion(text: string): OrgDeletion {
  return orgDeletion.parse(JSON.parse(text));
}
