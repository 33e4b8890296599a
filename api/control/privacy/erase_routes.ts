// The route that erases the data of a person: every trace that has a given user, session or other
// attribute.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ERASE, type EraseArgs } from '../../../schemas/records/erasure.ts';
import { jobView, type JobView } from '../../../schemas/records/job_record.ts';
import { ApiError } from '../../http/errors.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';

const TAG = 'Privacy';

const ATTRIBUTE_CHARS_MAX = 128;
const VALUE_CHARS_MAX = 1024;

/** An attribute name is neither empty nor contains control characters. */
const eraseBody = z.strictObject({
  attribute: z
    .string()
    .max(ATTRIBUTE_CHARS_MAX, { error: `must have at most ${ATTRIBUTE_CHARS_MAX} characters` })
    .regex(/^(?!\s*$)\P{Cc}+$/u, {
      error: 'must be user_id, session_id, agent_id, trace_id or the name of an attribute',
    })
    .describe('user_id, session_id, agent_id, trace_id, or the name of a top-level field of attributes'),
  value: z
    .string()
    .min(1, { error: 'must have at least one character' })
    .max(VALUE_CHARS_MAX, { error: `must have at most ${VALUE_CHARS_MAX} characters` })
    .refine((value) => value.trim() !== '', { error: 'must contain more than white space' })
    .describe('The whole value as text. A number or boolean as it was sent'),
});

export interface EraseDeps {
  /** @throws ApiError conflict when the organization has too many open jobs */
  checkRoom: (org_id: string) => void;
  /** Stores a value for the worker. @returns the id under which it is stored */
  keep: (org_id: string, value: string) => Promise<string>;
  /**
   * Creates a long job. @throws ApiError conflict when the organization has too many open jobs,
   * upstream_unavailable
   */
  ask: (job: { org_id: string; kind: string; args: unknown }) => Promise<JobView>;
}

/**
 * Returns the hash by which the audit log identifies a value: it can be checked against a known
 * value, but does not reveal it.
 */
export const valueHash = (org_id: string, value: string): string =>
  createHash('sha256').update(`${org_id}\n${value}`).digest('hex');

export function eraseRoutes(deps: EraseDeps): Route[] {
  return [erasePersonRoute(deps)];
}

function erasePersonRoute({ checkRoom, keep, ask }: EraseDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/gdpr/erase',
    operation_id: 'erasePerson',
    summary: 'Erase the data of a person',
    description:
      'Erases every trace that has the value in the given attribute: spans, prompts, responses and scores, from ClickHouse, cold storage and the ingest log. A worker erases the data, checks again, and reports what it found: poll `GET /v1/jobs/{id}`. Events accepted after the request are new data. Costs and usage stay, as they name nobody. The audit log keeps the SHA-256 of the `org_id`, a line break and the value.',
    tag: TAG,
    permission: 'gdpr:execute',
    audit: { action: 'gdpr.erase', target: 'job' },
    params: orgParams,
    body: eraseBody,
    example: { attribute: 'user_id', value: 'u_1234' },
    status: 202,
    response: jobView,
    errors: ['conflict', 'upstream_unavailable'],
    handler: async ({ org_id, body: { attribute, value }, audit }) => {
      // Checked before the value is stored, which would otherwise wait for a job that is never
      // created.
      checkRoom(org_id);
      const ask_id = await keep(org_id, value).catch((cause: unknown) => {
        throw new ApiError('upstream_unavailable', 'The job could not be stored. Try again.', { cause });
      });
      const job = await ask({ org_id, kind: ERASE, args: { attribute, ask_id } satisfies EraseArgs });
      audit.target(job.job_id);
      audit.changes({ attribute, value_sha256: valueHash(org_id, value) });
      return { data: job };
    },
  });
}
